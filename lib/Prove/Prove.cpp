// Divides the numbers of microbatches into ranges about which one thing can be
// proven, or that are small enough to look at each number.
#include "ppcc/Prove/Prove.h"
#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Basic/Diagnostics/Prove.h"

#include "Evidence.h"
#include "Figures.h"
#include "Judge.h"
#include "Memory.h"
#include "Model.h"
#include "Ranges.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/MemoryCurve.h"
#include "ppcc/Compiler/CommPolicy.h"
#include "ppcc/Expand/Expand.h"
#include "ppcc/Family/Layout.h"
#include "ppcc/Prove/Request.h"
#include "ppcc/Support/CheckedInt.h"
#include "ppcc/Support/Suggest.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;
using namespace ppcc::family;
using proof::Checker;
using proof::Finding;

StringRef ppcc::verdictName(Verdict verdict) {
  static constexpr StringRef names[] = {"right", "wrong", "excluded",
                                        "undecided"};
  return names[static_cast<size_t>(verdict)];
}

bool Proof::isRight() const {
  return llvm::all_of(ranges, [](const ProvenRange &range) {
    return range.verdict == Verdict::Right ||
           range.verdict == Verdict::Excluded;
  });
}

namespace {

/// Rows that may be laid out for numbers that are looked at one by one.
constexpr int64_t mostRows = 12'000'000;
/// Rows that are looked at, of all instances, and of templates so often as
/// these are more work.
constexpr int64_t mostWork = 40'000'000, workOfTemplate = 100;
/// How often the first number of a family is raised, so that what happens
/// before its windows settles.
constexpr int mostGrowths = 9;
constexpr int mostCuts = 200;
constexpr int64_t mostStep = 4096;

struct Task {
  Family family;
  Hints hints{};
  int growths = 0, cuts = 0, doublings = 0, peels = 0;
};

/// A program has the kinds that it uses, whatever files declare.
void dropUnusedKinds(Head &head, proof::Template &program) {
  if (!head.kinds.hasDeclared() || !head.nodes.empty())
    return;
  BitVector used(head.kinds.size());
  std::vector<KindId> renumbered;
  for (const auto &rows : program.ranks)
    for (const proof::Row &row : rows)
      used.set(row.kind.value);
  KindTable kinds = head.kinds.pruned(std::move(used), renumbered);
  for (auto &rows : program.ranks)
    for (proof::Row &row : rows)
      row.kind = renumbered[row.kind.value];
  head.setKinds(std::move(kinds), renumbered);
}

class Prover {
public:
  Prover(const ProveRequest &request, Session &session, const Checked &checked,
         uint32_t param, Proof &proof)
      : request(request), session(session), module(checked.module),
        schedule(*checked.selection.schedule), param(param), proof(proof),
        singles(request, session, checked) {
    hasWhile = llvm::any_of(module.blocks,
                            [&](const sema::Block &block) {
                              return contains(block.item->body);
                            }) ||
               (schedule.onRank && contains(schedule.onRank->body)) ||
               llvm::any_of(schedule.onRanks, [](const ast::OnRankItem *item) {
                 return contains(item->body);
               });
  }

  bool run() {
    Task all;
    all.family.param = param;
    tasks.push_back(all);
    while (!tasks.empty() && !singles.failed) {
      Task task = std::move(tasks.back());
      tasks.pop_back();
      if (!isAsked(task.family))
        continue;
      if (isSpent()) {
        foundTooMuch(task.family, 0);
        continue;
      }
      try {
        process(task);
      } catch (const std::overflow_error &) {
        giveUp(std::move(task), "numbers become too large", Place());
      }
    }
    if (singles.failed)
      return false;
    llvm::sort(proof.ranges, [](const ProvenRange &a, const ProvenRange &b) {
      return a.from < b.from;
    });
    if (request.certifies)
      proof.parts = proof.ranges;
    joinRemainders(proof.ranges);
    llvm::stable_sort(proof.ranges,
                      [](const ProvenRange &a, const ProvenRange &b) {
                        return a.from < b.from;
                      });
    return true;
  }

private:
  /// Whether somebody wants to know of a number of the family.
  bool isAsked(const Family &family) const {
    int64_t behind = request.only.value_or(family.base) - family.base;
    return behind >= 0 && behind % family.step == 0 &&
           (family.last == proof::endless ||
            behind / family.step <= family.last);
  }

  static bool contains(ast::Body body) {
    return llvm::any_of(body, [](const ast::Stmt *stmt) {
      bool found = stmt->kind == ast::StmtKind::While;
      forEachBody(stmt, [&](ast::Body inner) { found |= contains(inner); });
      return found;
    });
  }

  // ---- Ranges ----

  static int64_t number(const Family &family, int64_t n) {
    return family.base + family.step * n;
  }

  ProvenRange rangeOf(const Family &family, int64_t first, int64_t last) const {
    ProvenRange range;
    range.modulus = family.step;
    range.residue = family.base % family.step;
    range.from = number(family, first);
    if (last != proof::endless)
      range.to = number(family, last);
    if (last == first)
      std::tie(range.modulus, range.residue) = std::pair(1, 0);
    return range;
  }

  void found(const Family &family, int64_t first, Verdict verdict,
             std::string reason, Place place,
             std::optional<Formula> makespan = std::nullopt,
             std::optional<Figures> figures = std::nullopt,
             const Notes &notes = {}) {
    if (isProbe) {
      hasSettled = verdict == Verdict::Right && makespan && makespan->isExact;
      return;
    }
    if (!isAsked(from({family}, first).family))
      return;
    ProvenRange range = rangeOf(family, first, family.last);
    range.verdict = verdict;
    range.reason = std::move(reason);
    range.place = std::move(place);
    range.makespan = makespan;
    range.figures = std::move(figures);
    range.evidence = notes.evidence;
    range.programs = notes.programs;
    if (range.figures && range.figures->work && makespan) {
      const Formula &work = *range.figures->work;
      range.figures->bubble = Formula{
          makespan->slope * ranks - work.slope,
          makespan->intercept * ranks - work.intercept, makespan->isExact};
    }
    proof.ranges.push_back(std::move(range));
  }

  /// The numbers from `n` on.
  static Task from(Task task, int64_t n) {
    task.family.base = number(task.family, n);
    if (task.family.last != proof::endless)
      task.family.last -= n;
    return task;
  }

  /// Every so many-th.
  static Task every(Task task, int64_t factor) {
    task.family.step *= factor;
    if (task.family.last != proof::endless)
      task.family.last /= factor;
    return task;
  }

  /// Those before `n`.
  static Task before(Task task, int64_t n) {
    task.family.last = n - 1;
    return task;
  }

  // ---- What it takes ----

  bool isSpent() const { return work < 0; }
  /// Counts so many rows.
  void spend(__int128 rows) {
    work -= static_cast<int64_t>(std::min<__int128>(rows, mostWork));
  }
  void foundTooMuch(const Family &family, int64_t first) {
    found(family, first, Verdict::Undecided,
          fmt::format("more than {} rows of programs would be looked at",
                      mostWork),
          Place());
  }

  __int128 rowsOf(const Family &family) const {
    return (__int128(family.base) + number(family, family.last)) *
           (__int128(family.last) + 1) / 2 * stages * 6;
  }
  bool isFew(const Family &family) const {
    return family.last != proof::endless && family.last < 100'000 &&
           // One number is looked at, whatever was spent on others.
           rowsOf(family) <= (family.last == 0 ? mostRows : rowsLeft);
  }

  // ---- One by one ----

  /// Looks at each number of a family.
  void lookAt(const Family &family) {
    if (request.only || isProbe)
      return;
    rowsLeft -= static_cast<int64_t>(rowsOf(family));
    for (int64_t n = 0; n <= family.last && !singles.failed; ++n) {
      if (isSpent())
        return foundTooMuch(family, n);
      spend(rowsOf({param, number(family, n), 1, 0}));
      lookAt(number(family, n));
    }
  }

  void lookAt(int64_t m) {
    Quiet quiet;
    auto program = singles.compile(m, true, quiet);
    Family one{param, m, 1, 0};
    wrongInRow = program ? 0 : wrongInRow + !quiet.isExcluded;
    if (!program) {
      if (!singles.failed)
        found(one, 0, quiet.isExcluded ? Verdict::Excluded : Verdict::Wrong,
              quiet.message(), quiet.place());
      return;
    }
    ends[m] = endOf(*program);
    static const Transport none;
    auto policy = singles.policyFor(*program, quiet.diags);
    bool byData = policy->transports.empty() || request.byData;
    Program bare;
    if (byData && program->firstMessage()) {
      Quiet other;
      if (auto again = singles.compile(m, false, other))
        bare = std::move(*again);
    }
    const Program &run = byData && program->firstMessage() ? bare : *program;
    const TimedRun *timing = Analyses(run).timedRun(
        byData ? none : policy->transports.front(), quiet.diags);
    std::optional<Formula> makespan;
    if (timing)
      makespan =
          Formula{{}, Rational(timing->simulation.makespan, cost::unit), true};
    Notes notes;
    if (request.certifies)
      notes = notesOf(m, *program, policy->transports, request.byData, singles);
    std::optional<Figures> figures;
    if (request.explains) {
      ranks = program->numRanks();
      figures = figuresOf(run, timing);
    }
    found(one, 0, Verdict::Right, "", Place(), makespan, std::move(figures),
          notes);
  }

  // ---- Many at once ----

  Outcome layOut(const Family &family, const sema::Instance *sample,
                 ArrayRef<TurnCounts> counts, const Hints &hints,
                 TurnCounts *counted = nullptr) {
    spend(workOfTemplate * (stages + 100));
    return family::layOut(module, schedule, request.compile.params, family,
                          sample, counts, hints, counted);
  }

  void process(Task task) {
    const Family &family = task.family;
    if (isFew(family) && (family.last < 3 || task.cuts > 0))
      return lookAt(family);
    Outcome outcome = layOut(family, nullptr, {}, task.hints);
    if (outcome.kind != Outcome::Kind::LaidOut)
      return follow(std::move(task), std::move(outcome));
    beginLater(task);
    Quiet quiet;
    sema::Evaluator evaluator(module, quiet.diags,
                              request.compile.limits.maxSteps());
    auto sample = singles.instantiate(family.base, evaluator, quiet);
    // No placement depends on n, so that an error of it is one of all.
    if (!sample && quiet.first && quiet.first->id == diag::StageOnNoRank)
      return found(family, 0, Verdict::Wrong, quiet.first->message,
                   quiet.first->place);
    if (!sample) {
      outcome.kind = Outcome::Kind::Cut;
      outcome.value = 1;
      outcome.why = quiet.message();
      outcome.place = quiet.first ? quiet.first->place.range : SourceRange();
      return follow(std::move(task), std::move(outcome));
    }
    stages = 0;
    for (const Pipe &pipe : sample->program.pipes)
      stages += pipe.numStages();
    ranks = sample->program.numRanks;
    if (request.only && *request.only < 16 * ranks * ranks)
      return tasks.clear();
    std::vector<TurnCounts> counts(hasWhile ? 3 : 0);
    for (auto [n, ofN] : llvm::enumerate(counts))
      layOut({param, number(family, n), family.step, 0}, &*sample, {}, {},
             &ofN);
    outcome = layOut(family, &*sample, counts, task.hints);
    if (outcome.kind != Outcome::Kind::LaidOut)
      return follow(std::move(task), std::move(outcome));
    dropUnusedKinds(sample->program, outcome.program);
    outcome.program.head = &sample->program;
    judge(std::move(task), outcome.program);
  }

  /// Goes on after a layout that did not come to its end.
  void follow(Task task, Outcome outcome) {
    const Family family = task.family;
    switch (outcome.kind) {
    case Outcome::Kind::Excluded:
      return found(family, 0, Verdict::Excluded, outcome.why, outcome.place);
    case Outcome::Kind::Wrong: {
      Quiet quiet;
      if (singles.compile(number(family, outcome.value), false, quiet) ||
          singles.failed)
        return giveUp(std::move(task),
                      "an instance is not as was predicted: " + outcome.why,
                      outcome.place);
      if (outcome.value > 0)
        tasks.push_back(before(task, outcome.value));
      return found(family, outcome.value, Verdict::Wrong, outcome.why,
                   outcome.place);
    }
    case Outcome::Kind::Cut: {
      if (++task.cuts > mostCuts || outcome.value > family.last ||
          outcome.value > INT64_MAX / 4 / family.step)
        return giveUp(std::move(task), outcome.why, outcome.place);
      Task upper = from(task, outcome.value);
      // An error in the middle of a loop shows when its window begins
      // elsewhere.
      if (wrongInRow >= 12) {
        wrongInRow = 0;
        upper.family.lean =
            upper.family.lean == Lean::Behind ? Lean::Before : Lean::Behind;
      }
      if (!outcome.hints.empty())
        upper.hints = outcome.hints;
      tasks.push_back(std::move(upper));
      tasks.push_back(before(std::move(task), outcome.value));
      return;
    }
    case Outcome::Kind::Again:
      task.hints = outcome.hints;
      if (++task.cuts > mostCuts)
        return giveUp(std::move(task), outcome.why, outcome.place);
      tasks.push_back(std::move(task));
      return;
    case Outcome::Kind::Multiply:
      return multiply(std::move(task), outcome.value, outcome.why,
                      outcome.place);
    case Outcome::Kind::LaidOut:
    case Outcome::Kind::Undecided:
      if (hasWhile && task.doublings++ < 2)
        return multiply(std::move(task), 2, outcome.why, outcome.place);
      return giveUp(std::move(task), outcome.why, outcome.place);
    }
  }

  /// Makes a family of each remainder.
  void multiply(Task task, int64_t factor, const std::string &why,
                Place place) {
    if (factor < 2 || task.family.step * factor > mostStep)
      return giveUp(std::move(task), why, std::move(place));
    for (int64_t n = factor; n-- > 0;)
      if (n <= task.family.last)
        tasks.push_back(every(from(task, n), factor));
  }

  void giveUp(Task task, std::string why, Place place) {
    if (isFew(task.family))
      return lookAt(task.family);
    found(task.family, 0, Verdict::Undecided, std::move(why), std::move(place));
  }

  /// Looks at some of the first numbers, so that the others begin later. False
  /// where that was done too often.
  bool grow(Task &task) {
    int64_t some = std::max<int64_t>(1, ranks * (task.growths + 1) /
                                            (4 * task.family.step));
    Task few = before(task, some);
    if (task.growths >= mostGrowths || some > task.family.last ||
        !isFew(few.family))
      return false;
    ++task.growths;
    tasks.push_back(from(task, some));
    lookAt(few.family);
    return true;
  }

  /// Whether the numbers of one remainder settle into an order, with its exact
  /// makespan.
  bool settles(Task task, int64_t factor) {
    if (isProbe)
      return false;
    task.growths = mostGrowths;
    auto outer = std::exchange(tasks, {});
    isProbe = true;
    hasSettled = false;
    try {
      process(every(std::move(task), factor));
    } catch (const std::overflow_error &) {
      hasSettled = false;
    }
    isProbe = false;
    tasks = std::move(outer);
    return hasSettled;
  }

  /// Where others of so many remainders begin to settle, so that this one need
  /// not be tried before.
  void beginLater(Task &task) {
    auto known = settled.find(task.family.step);
    if (known == settled.end() || task.growths != 0 || isProbe)
      return;
    int64_t some = (known->second - task.family.base) / task.family.step;
    if (some < 1 || some > task.family.last ||
        !isFew(before(task, some).family))
      return;
    lookAt(before(task, some).family);
    task = from(std::move(task), some);
    ++task.growths;
  }

  void judge(Task task, proof::Template &program) {
    const Family family = task.family;
    if (family.last < 3)
      return giveUp(std::move(task), "", Place());
    spend(workOfTemplate * 1000);
    for (const auto &rows : program.ranks)
      spend(workOfTemplate * rows.size());
    auto byData = Checker::of(program, nullptr);
    Finding whole = byData->complete();
    if (whole.kind == Finding::Kind::Fails) {
      Quiet quiet;
      if (!singles.compile(family.base, true, quiet) && !singles.failed)
        return found(family, 0, Verdict::Wrong, whole.why, quiet.place());
      return giveUp(std::move(task), "an instance is not as was predicted", {});
    }
    if (!whole)
      return task.doublings++ < 1 && family.step <= 64
                 ? multiply(std::move(task), 2, whole.why, {})
                 : giveUp(std::move(task), whole.why, Place());

    Quiet quiet;
    auto first = singles.compile(number(family, 1), false, quiet),
         second = singles.compile(number(family, 2), false, quiet);
    if (singles.failed)
      return;
    if (!first || !second || !isInstance(program, 1, *first) ||
        !isInstance(program, 2, *second))
      return giveUp(std::move(task), "an instance is not as was predicted",
                    quiet.place());
    auto [why, place] = singles.unsupported(*first, ordersGlobally);
    if (!why.empty())
      return giveUp(std::move(task), why, place);
    auto model = modelOf(*first, program);
    if (limitMemory(task, program, *first, model->costs))
      return;
    Judge judge{request, singles, family,       program, *byData,
                *first,  *second, model->costs, Notes()};
    if (request.certifies) {
      setSites(program, *first);
      judge.notes = Notes::of(family.base, family.step, *first, program, model);
      judge.notes.programs->next = second->params();
    }
    std::optional<Figures> figures;
    if (request.explains)
      figures = figuresOf(family, program, model->costs, *second);
    bool isByData = request.byData || request.certifies;
    auto orderByData = [&] {
      Finding ordered = judge.orderByData();
      if (judge.circle)
        foundCircle(task, program, *judge.circle, judge.notes);
      else if (!ordered && !grow(task))
        giveUp(task, ordered.why, Place());
      return bool(ordered);
    };
    if (isByData && !orderByData())
      return;
    if (request.byData && request.compile.comm.transports.empty())
      return found(family, 0, Verdict::Right, "", Place(),
                   judge.makespanByData(), std::move(figures), judge.notes);
    Finding carried = judge.carry();
    // An order of events with messages is one by data, too.
    if (!carried && !isByData && !orderByData())
      return;
    std::optional<Formula> makespan = judge.makespan;
    if (request.byData)
      makespan = judge.makespanByData();
    if (!carried || !makespan || !makespan->isExact) {
      // Ranks may take turns in what they do first, or messages in a rhythm.
      for (auto [growths, step] :
           {std::pair(1, ranks),
            {3, 2 * ranks},
            {2, family.step == 1 ? periodOf(proof.ranges, family.base) : 1},
            {3, family.step == 1 ? periodOf(ends, family.base) : 1}})
        if (int64_t factor = step / std::gcd(step, family.step);
            task.growths >= growths && factor != 1 && family.last > 8 * ranks &&
            family.step * factor <= mostStep && settles(task, factor))
          return multiply(std::move(task), factor, carried.why, {});
      if (grow(task))
        return;
    }
    if (carried && !judge.isPlaced && judge.notes && task.peels++ < 3 &&
        family.last > 8 && isFew(before(task, 2).family)) {
      lookAt(before(task, 2).family);
      proof::Template inner = peeled(program);
      return this->judge(from(std::move(task), 2), inner);
    }
    if (carried.kind == Finding::Kind::Fails || (!carried && !ordersGlobally))
      return giveUp(std::move(task), carried.why, Place());
    if (carried && family.step > 1) {
      // Where one did not settle at first, its neighbour will not either.
      int64_t from = family.base + (task.growths > 0 ? family.step - 1 : 0);
      settled[family.step] = std::max(settled[family.step], from);
    }
    if (!carried && judge.notes) {
      judge.notes.evidence->carried = judge.notes.programs->carried = {};
      judge.notes.evidence->shown.resize(1);
    }
    if (figures)
      figures->limit = std::move(judge.limit);
    found(family, 0, Verdict::Right,
          carried ? ""
                  : "by data; messages are right in the order that was chosen "
                    "(" +
                        carried.why + ")",
          Place(), makespan, std::move(figures), judge.notes);
  }

  /// Whether the limits of memory were all that there was to say, or what is to
  /// be said of parts of the family.
  bool limitMemory(const Task &task, const proof::Template &program,
                   const Program &sample, const proof::Costs &costs) {
    if (!sample.costs().has({Cost::MemoryLimit}))
      return false;
    auto holdings = holdingsOf(program, costs);
    if (!holdings) {
      giveUp(task,
             "memory is limited, and differs between microbatches, or what "
             "declared actions do to it is not clear",
             Place());
      return true;
    }
    Excess excess = excessOf(program, *holdings, costs);
    if (excess.over) {
      auto [rank, peak] = *excess.over;
      Amount limit = *MemoryModel(sample).limitOf(RankId(rank));
      found(
          task.family, 0, Verdict::Wrong,
          fmt::format("rank {} holds {}, above its limit of {}", rank,
                      formula(task.family, peak + (limit - roomOf(costs, rank)),
                              amount::unit)
                          .text(request.free),
                      amount::format(limit)),
          Place());
      return true;
    }
    if (excess.change != 0) {
      follow(task, Outcome{Outcome::Kind::Cut,
                           excess.change,
                           task.hints,
                           {},
                           "memory is limited",
                           {}});
      return true;
    }
    return false;
  }

  void foundCircle(const Task &task, const proof::Template &program,
                   const Judge::Circle &circle, const Notes &notes) {
    const auto &[events, from] = circle;
    std::vector<uint32_t> ranks;
    for (const proof::Event &event : events)
      if (!llvm::is_contained(ranks, event.rank))
        ranks.push_back(event.rank);
    const proof::Row &row = program.ranks[events[0].rank][events[0].row];
    SourceLoc at;
    at.raw = row.place;
    if (notes)
      notes.evidence->circle = events;
    found(task.family, from, Verdict::Wrong,
          ranks.size() == 1 ? fmt::format("rank {} waits for itself", ranks[0])
                            : fmt::format("ranks {} wait in a circle",
                                          fmt::join(ranks, ", ")),
          Place(at), std::nullopt, std::nullopt, notes);
    if (from > 0)
      lookAt(before(task, from).family);
  }

  const ProveRequest &request;
  Session &session;
  const sema::Module &module;
  const sema::Schedule &schedule;
  const uint32_t param;
  Proof &proof;
  Singles singles;
  bool hasWhile = false, ordersGlobally = false;
  int64_t stages = 64, ranks = 1, rowsLeft = mostRows, work = mostWork;
  std::vector<Task> tasks;
  int wrongInRow = 0; ///< Of the numbers that were looked at last.
  bool isProbe = false, hasSettled = false;
  std::map<int64_t, int64_t> settled; ///< By step: the first number.
  std::map<int64_t, size_t> ends; ///< By number: how the lists of ranks end.
};

} // namespace

std::optional<Proof> ppcc::prove(const ProveRequest &request, Session &session,
                                 std::string &misuse) {
  auto asked = readRequest(request, session, misuse);
  if (!asked || !Prover(request, session, *asked->compiled.checked,
                        asked->free.front(), asked->proof)
                     .run())
    return std::nullopt;
  return std::move(asked->proof);
}
