// Divides the numbers of microbatches into ranges about which one thing can be
// proven, or that are small enough to look at each number.
#include "ppcc/Prove/Prove.h"
#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Basic/Diagnostics/Prove.h"

#include "Figures.h"
#include "Fit.h"
#include "Memory.h"
#include "Ranges.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/MemoryCurve.h"
#include "ppcc/Compiler/CommWords.h"
#include "ppcc/Expand/Expand.h"
#include "ppcc/Family/Layout.h"
#include "ppcc/Support/CheckedInt.h"
#include "ppcc/Support/Suggest.h"
#include "ppcc/Verify/Passes.h"

#include <fmt/format.h>

#include <numeric>

using namespace ppcc;
using namespace ppcc::family;
using llvm::StringRef;
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
constexpr int64_t mostRows = 18'000'000;
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

/// Takes diagnostics, and keeps the first.
struct Quiet {
  std::optional<Diagnostic> first;
  bool isExcluded = false;
  DiagnosticEngine diags{[this](const Diagnostic &found) {
    if (found.info().severity != Severity::Error)
      return;
    isExcluded |=
        found.id == diag::RequireFailed || found.id == diag::ParameterRange;
    if (!first)
      first = found;
  }};
};

class Prover {
public:
  Prover(const ProveRequest &request, Session &session, const Checked &checked,
         uint32_t param, Proof &proof)
      : request(request), session(session), checked(checked),
        module(checked.module), schedule(*checked.selection.schedule),
        param(param), proof(proof),
        layouter(module, schedule, request.compile.params) {
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
    while (!tasks.empty() && !failed) {
      Task task = std::move(tasks.back());
      tasks.pop_back();
      if (!isAsked(task.family))
        continue;
      try {
        process(task);
      } catch (const std::overflow_error &) {
        giveUp(std::move(task), "numbers become too large", Place());
      }
    }
    if (failed)
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
             std::optional<Figures> figures = std::nullopt) {
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
    range.evidence = std::move(evidence);
    evidence = nullptr;
    if (range.figures && makespan) {
      const Formula &work = range.figures->work;
      auto less = [&](Rational total, Rational part) {
        return Rational::of(__int128(total.numerator) * ranks,
                            total.denominator) -
               part;
      };
      range.figures->bubble =
          Formula{less(makespan->slope, work.slope),
                  less(makespan->intercept, work.intercept), makespan->isExact};
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

  /// Those before `n`.
  static Task before(Task task, int64_t n) {
    task.family.last = n - 1;
    return task;
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

  /// The program of a number, by the ordinary compiler; without messages, and
  /// verified with them, where `isDone`.
  std::optional<Program> compileOne(int64_t m, bool isDone, Quiet &quiet) {
    sema::Evaluator evaluator(module, quiet.diags,
                              request.compile.limits.maxSteps());
    auto instance = instantiate(m, evaluator, quiet);
    if (!instance)
      return std::nullopt;
    stages = 0;
    for (const Pipe &pipe : instance->program.pipes)
      stages += pipe.numStages();
    auto price = [&](Program &program) { return setCosts(program); };
    auto program = expand(module, std::move(*instance), request.compile.limits,
                          evaluator, session.sources, price, quiet.diags);
    if (!program || !setCosts(*program))
      return std::nullopt;
    if (!isDone)
      return program;
    auto policy = policyFor(*program, quiet.diags);
    PassContext context(session.sources, quiet.diags);
    if (!policy)
      return std::nullopt;
    Pipeline pipeline = policy->pipeline();
    if (program->costs().has({Cost::MemoryLimit}))
      pipeline.push_back({"verify-memory", PassKind::Check,
                          verifyMemory(policy->transports.empty()
                                           ? *findTransport("stream")
                                           : policy->transports.front())});
    if (!runPipeline(pipeline, *program, context))
      return std::nullopt;
    return program;
  }

  std::optional<sema::Instance>
  instantiate(int64_t m, sema::Evaluator &evaluator, Quiet &quiet) const {
    std::vector<sema::ParamValue> values = request.compile.params;
    values.push_back({request.free, fmt::format("{}", m)});
    return sema::instantiate(checked.selection, values, checked.layout,
                             request.compile.limits, evaluator, quiet.diags);
  }

  bool setCosts(Program &program) {
    const CostRequest &costs = request.compile.costs;
    if (costs.files.empty() && costs.settings.empty())
      return true;
    failed |= !applyCosts(costs, session, program);
    return !failed;
  }

  std::optional<CommPolicy> policyFor(const Program &program,
                                      DiagnosticEngine &diags) {
    CommRequest comm = request.compile.comm;
    if (!request.certifies)
      comm.preconnect = Preconnect::Off;
    if (request.byData && comm.transports.empty())
      comm.order = CommOrder::None;
    auto policy = decideComm(comm, &checked.selection, program, diags);
    if (policy && request.byData && comm.transports.empty())
      policy->transports.clear();
    if (policy && policy->transports.empty())
      policy->proves = false;
    return policy;
  }

  /// Looks at each number of a family.
  void lookAt(const Family &family) {
    if (request.only || isProbe)
      return;
    rowsLeft -= static_cast<int64_t>(rowsOf(family));
    for (int64_t n = 0; n <= family.last && !failed; ++n)
      lookAt(number(family, n));
  }

  void lookAt(int64_t m) {
    Quiet quiet;
    auto program = compileOne(m, true, quiet);
    Family one{param, m, 1, 0};
    wrongInRow = program ? 0 : wrongInRow + !quiet.isExcluded;
    if (!program) {
      if (!failed)
        found(one, 0, quiet.isExcluded ? Verdict::Excluded : Verdict::Wrong,
              quiet.first ? quiet.first->message : "",
              quiet.first ? quiet.first->place : Place());
      return;
    }
    std::optional<Formula> makespan;
    static const Transport none;
    auto policy = policyFor(*program, quiet.diags);
    bool byData = policy->transports.empty() || request.byData;
    Program bare;
    if (byData && program->firstMessage()) {
      Quiet other;
      if (auto again = compileOne(m, false, other))
        bare = std::move(*again);
    }
    const Program &run = byData && program->firstMessage() ? bare : *program;
    if (const TimedRun *timing = Analyses(run).timedRun(
            byData ? none : policy->transports.front(), quiet.diags))
      makespan = Formula{
          {}, Rational::of(timing->simulation.makespan, cost::unit), true};
    if (request.certifies)
      certify(m, *program, policy->transports.empty() ? nullptr : &*policy,
              makespan.has_value());
    std::optional<Figures> figures;
    if (request.explains) {
      ranks = program->numRanks();
      figures = figuresOf(*program);
    }
    found(one, 0, Verdict::Right, "", Place(), makespan, std::move(figures));
  }

  /// Begins evidence about the programs of base + step n.
  void beginEvidence(int64_t base, int64_t step, const Program &sample) {
    evidence = std::make_shared<proof::Evidence>();
    evidence->base = base;
    evidence->step = step;
    Rows none;
    for (RankId rank : sample.ranks()) {
      (void)rank;
      none.beginRank();
    }
    evidence->head = sample.withRows(std::move(none));
  }

  /// What shows that the program of one number is right.
  void certify(int64_t m, const Program &program, const CommPolicy *policy,
               bool hasMakespan) {
    beginEvidence(m, 1, program);
    evidence->preconnect = program.preconnect();
    auto show = [&](const Program &one, const Transport *transport,
                    proof::Template &place, bool isFirst) {
      place = templateOf(one, evidence->head.head());
      ProgramIndex index(one);
      std::optional<MessageIndex> messages;
      if (transport)
        messages.emplace(one, index);
      Durations durations(one);
      auto order = orderOf(one, index, messages ? &*messages : nullptr,
                           transport, durations);
      if (!order)
        return;
      evidence->shown.push_back(
          {transport ? transport->name : "data", timesAt(place, *order)});
      if (!isFirst || !hasMakespan)
        return;
      auto run = transport
                     ? simulate(one, index, *messages, durations, *transport)
                     : simulate(one, index, durations);
      if (run) {
        evidence->durations = durationsOf(place, one, durations);
        evidence->times =
            timesAt(place, {std::move(run->starts), std::move(run->ends)});
      }
    };
    Quiet quiet;
    if (auto bare = compileOne(m, false, quiet)) {
      show(*bare, nullptr, evidence->byData, request.byData || !policy);
      if (bare->costs().has({Cost::MemoryLimit}))
        if (auto holdings = holdingsOf(evidence->byData, *bare)) {
          evidence->holdings = std::move(*holdings);
          evidence->rooms = roomsOf(*bare);
        }
    }
    if (policy)
      for (const Transport &transport : policy->transports)
        show(program, &transport, evidence->carried,
             !request.byData && &transport == &policy->transports.front());
  }

  // ---- Many at once ----

  void process(Task task) {
    const Family &family = task.family;
    if (isFew(family) && (family.last < 3 || task.cuts > 0))
      return lookAt(family);
    Outcome outcome = layouter.run(family, nullptr, {}, task.hints);
    if (outcome.kind != Outcome::Kind::LaidOut)
      return follow(std::move(task), std::move(outcome));
    beginLater(task);
    Quiet quiet;
    sema::Evaluator evaluator(module, quiet.diags,
                              request.compile.limits.maxSteps());
    auto sample = instantiate(family.base, evaluator, quiet);
    // No placement depends on n, so that an error of it is one of all.
    if (!sample && quiet.first && quiet.first->id == diag::StageOnNoRank)
      return found(family, 0, Verdict::Wrong, quiet.first->message,
                   quiet.first->place);
    if (!sample) {
      outcome.kind = Outcome::Kind::Cut;
      outcome.value = 1;
      outcome.why = quiet.first ? quiet.first->message : "";
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
      layouter.run({param, number(family, n), family.step, 0}, &*sample, {}, {},
                   &ofN);
    outcome = layouter.run(family, &*sample, counts, task.hints);
    if (outcome.kind != Outcome::Kind::LaidOut)
      return follow(std::move(task), std::move(outcome));
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
      if (compileOne(number(family, outcome.value), false, quiet) || failed)
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
    for (int64_t n = factor; n-- > 0;) {
      if (n > task.family.last)
        continue;
      Task part = from(task, n);
      part.family.step *= factor;
      if (part.family.last != proof::endless)
        part.family.last /= factor;
      tasks.push_back(std::move(part));
    }
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
    task.family.step *= factor;
    if (task.family.last != proof::endless)
      task.family.last /= factor;
    task.growths = mostGrowths;
    auto outer = std::pair(std::exchange(tasks, {}), evidence);
    isProbe = true;
    hasSettled = false;
    try {
      process(std::move(task));
    } catch (const std::overflow_error &) {
      hasSettled = false;
    }
    isProbe = false;
    std::tie(tasks, evidence) = std::move(outer);
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
    evidence = nullptr;
    if (family.last < 3)
      return giveUp(std::move(task), "", Place());
    Checker byData(program, nullptr);
    Finding whole = byData.complete();
    if (whole.kind == Finding::Kind::Fails) {
      Quiet quiet;
      if (!compileOne(family.base, true, quiet) && !failed)
        return found(family, 0, Verdict::Wrong, whole.why,
                     quiet.first ? quiet.first->place : Place());
      return giveUp(std::move(task), "an instance is not as was predicted", {});
    }
    if (!whole)
      return task.doublings++ < 1 && family.step <= 64
                 ? multiply(std::move(task), 2, whole.why, {})
                 : giveUp(std::move(task), whole.why, Place());

    Quiet quiet;
    auto first = compileOne(number(family, 1), false, quiet),
         second = compileOne(number(family, 2), false, quiet);
    if (failed)
      return;
    if (!first || !second || !isInstance(program, 1, *first) ||
        !isInstance(program, 2, *second))
      return giveUp(std::move(task), "an instance is not as was predicted",
                    quiet.first ? quiet.first->place : Place());
    if (auto [why, place] = unsupported(*first); !why.empty())
      return giveUp(std::move(task), why, place);
    if (request.certifies) {
      beginEvidence(family.base, family.step, *first);
      evidence->next = second->params();
      setSites(program, *first);
      evidence->byData = program;
      evidence->byData.head = &evidence->head.head();
    }
    if (limitMemory(task, program, *first))
      return;
    bool isByData = request.byData || request.certifies;
    auto orderByData = [&] {
      Finding ordered =
          this->orderByData(task, program, byData, *first, *second);
      if (ordered.kind == Finding::Kind::Unknown && !grow(task))
        giveUp(task, ordered.why, Place());
      return bool(ordered);
    };
    if (isByData && !orderByData())
      return;
    if (request.byData && request.compile.comm.transports.empty())
      return found(family, 0, Verdict::Right, "", Place(),
                   makespanByData(family, program, byData, *first, *second));
    std::optional<Formula> makespan;
    std::optional<Figures> figures;
    Finding carried =
        carry(family, program, *first, *second, makespan, figures);
    // An order of events with messages is one by data, too.
    if (!carried && !isByData && !orderByData())
      return;
    if (request.byData) {
      if (evidence)
        evidence->times = std::nullopt;
      makespan = makespanByData(family, program, byData, *first, *second);
    }
    if (!carried || !makespan || !makespan->isExact) {
      // Ranks may take turns in what they do first.
      for (auto [growths, step] :
           {std::pair(1, ranks),
            {3, 2 * ranks},
            {2, family.step == 1 ? periodOf(proof.ranges, family.base) : 1}})
        if (int64_t factor = step / std::gcd(step, family.step);
            task.growths >= growths && factor != 1 && family.last > 8 * ranks &&
            family.step * factor <= mostStep && settles(task, factor))
          return multiply(std::move(task), factor, carried.why, {});
      // Or messages do, in a rhythm that no makespan shows.
      for (int64_t factor = 3;
           task.growths == 4 && family.step == 1 && family.last > 8 * ranks &&
           ranks <= 16 && factor < ranks;
           ++factor)
        if (settles(task, factor))
          return multiply(std::move(task), factor, carried.why, {});
      if (grow(task))
        return;
    }
    if (carried && !isPlaced && evidence && task.peels++ < 3 &&
        family.last > 8 && isFew(before(task, 2).family)) {
      lookAt(before(task, 2).family);
      proof::Template inner = peeled(program);
      return judge(from(std::move(task), 2), inner);
    }
    if (carried.kind == Finding::Kind::Fails || (!carried && !ordersGlobally))
      return giveUp(std::move(task), carried.why, Place());
    if (carried && family.step > 1)
      settled[family.step] = std::max(settled[family.step], family.base);
    if (!carried && evidence) {
      evidence->carried = {};
      evidence->shown.resize(1);
    }
    found(family, 0, Verdict::Right,
          carried ? ""
                  : "by data; messages are right in the order that was chosen "
                    "(" +
                        carried.why + ")",
          Place(), makespan, std::move(figures));
  }

  /// What of a program none of the checks speaks about, and where it is said.
  std::pair<std::string, Place> unsupported(const Program &program) {
    Quiet quiet;
    auto policy = policyFor(program, quiet.diags);
    if (!policy)
      return quiet.first ? std::pair(quiet.first->message, quiet.first->place)
                         : std::pair(std::string(), Place());
    // Such orders are projections of one order of all actions.
    ordersGlobally = policy->fusion->fusion == Fusion::None &&
                     !policy->fusion->places && !policy->torch;
    if (!policy->prefetch)
      return {};
    Place place("--prefetch");
    if (!request.compile.comm.prefetch)
      place = sema::commSetting(schedule, "prefetch").front().text.range;
    return {"the receives ahead of their readers are bounded", place};
  }

  /// Whether the limits of memory were all that there was to say, or what is to
  /// be said of parts of the family.
  bool limitMemory(const Task &task, const proof::Template &program,
                   const Program &sample) {
    if (!sample.costs().has({Cost::MemoryLimit}))
      return false;
    auto holdings = holdingsOf(program, sample);
    if (!holdings) {
      giveUp(task, "memory is limited, and differs between microbatches",
             Place());
      return true;
    }
    MemoryModel model(sample);
    std::vector<Amount> rooms = roomsOf(sample);
    int64_t change = 0; // The n from which on another answer is right.
    std::optional<std::pair<uint32_t, Affine>> over;
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
      for (Affine peak :
           proof::peaksOf(program.ranks[rank], (*holdings)[rank])) {
        Affine left = Affine{rooms[rank], 0, 0} - peak;
        bool fits = left.c >= 0;
        int64_t n = fits && left.n < 0    ? left.c / -left.n + 1
                    : !fits && left.n > 0 ? -*floorDiv(left.c, left.n)
                                          : 0;
        if (n > 0 && n <= task.family.last)
          change = change == 0 ? n : std::min(change, n);
        if (!fits && left.n <= 0 &&
            (!over || std::pair(peak.n, peak.c) >
                          std::pair(over->second.n, over->second.c)))
          over = {rank, peak};
      }
    if (change != 0 && !over) {
      follow(task, Outcome{Outcome::Kind::Cut,
                           change,
                           task.hints,
                           {},
                           "memory is limited",
                           {}});
      return true;
    }
    if (over) {
      evidence = nullptr;
      auto [rank, peak] = *over;
      Amount limit = *model.limitOf(RankId(rank));
      found(task.family, 0, Verdict::Wrong,
            fmt::format("rank {} holds {}, above its limit of {}", rank,
                        formula(task.family,
                                peak + Affine{limit - rooms[rank], 0, 0},
                                amount::unit)
                            .text(request.free),
                        amount::format(limit)),
            Place());
      return true;
    }
    if (evidence) {
      evidence->holdings = std::move(*holdings);
      evidence->rooms = std::move(rooms);
    }
    return false;
  }

  /// Whether no rank waits for itself by data; Fails where all was said.
  Finding orderByData(const Task &task, const proof::Template &program,
                      const Checker &checker, const Program &first,
                      const Program &second) {
    ProgramIndex firstIndex(first), secondIndex(second);
    Finding finding;
    auto order = orderBy(program, checker, nullptr, first, firstIndex, nullptr,
                         second, secondIndex, nullptr, finding);
    if (finding && evidence)
      evidence->shown.push_back({"data", std::move(*order)});
    if (order || finding.kind != Finding::Kind::Fails)
      return finding;
    for (int64_t n : {1, 2})
      for (bool fromEnd : {false, true}) {
        auto circle = circleOf(program, n, n == 1 ? first : second,
                               n == 1 ? firstIndex : secondIndex, fromEnd);
        for (int64_t from : {0, 1, 2})
          if (!circle.empty() && checker.isCircle(circle, from)) {
            foundCircle(task, program, circle, from);
            return {Finding::Kind::Fails, ""};
          }
      }
    return {Finding::Kind::Unknown, "ranks wait in a circle that changes"};
  }

  /// Numbers for all events, from runs in which each action takes its own time,
  /// or all take the same. In `finding` what is wrong with them: Fails where
  /// the programs do not reach their end.
  static std::optional<proof::Times>
  orderBy(const proof::Template &program, const Checker &checker,
          const Transport *transport, const Program &first,
          const ProgramIndex &firstIndex, const MessageIndex *firstMessages,
          const Program &second, const ProgramIndex &secondIndex,
          const MessageIndex *secondMessages, Finding &finding) {
    std::optional<proof::Times> order;
    for (bool isEven : {false, true}) {
      auto timesOf = [&](Program one) {
        CostModel &costs = one.editHead().costs;
        if (!transport || isEven)
          costs = {};
        if (isEven)
          for (KindId kind : one.kinds().ids())
            if (one.kinds()[kind].isCompute())
              costs.add(Cost::Action, kind, cost::unit);
        return Durations(one);
      };
      auto a = orderOf(first, firstIndex, firstMessages, transport,
                       timesOf(first)),
           b = orderOf(second, secondIndex, secondMessages, transport,
                       timesOf(second));
      if (!a || !b) {
        finding = {Finding::Kind::Fails, "what ranks do does not settle"};
        return std::nullopt;
      }
      order = fit(program, *a, *b);
      finding = order ? checker.forward(*order)
                      : Finding{Finding::Kind::Unknown,
                                "what ranks do does not settle"};
      if (finding)
        break;
    }
    return order;
  }

  void foundCircle(const Task &task, const proof::Template &program,
                   llvm::ArrayRef<proof::Event> circle, int64_t from) {
    std::string ranks;
    std::vector<uint32_t> seen;
    for (const proof::Event &event : circle)
      if (!llvm::is_contained(seen, event.rank)) {
        seen.push_back(event.rank);
        ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", event.rank);
      }
    const proof::Row &row = program.ranks[circle[0].rank][circle[0].row];
    SourceLoc at;
    at.raw = row.place;
    if (evidence)
      evidence->circle = circle.vec();
    found(task.family, from, Verdict::Wrong,
          seen.size() == 1 ? "rank " + ranks + " waits for itself"
                           : "ranks " + ranks + " wait in a circle",
          Place(at));
    if (from > 0)
      lookAt(before(task, from).family);
  }

  /// Whether the messages of the program arrive on all transports.
  Finding carry(const Family &family, const proof::Template &program,
                Program first, Program second, std::optional<Formula> &makespan,
                std::optional<Figures> &figures) {
    Quiet quiet;
    std::vector<Transport> transports;
    for (Program *one : {&first, &second}) {
      auto policy = policyFor(*one, quiet.diags);
      PassContext context(session.sources, quiet.diags);
      if (!policy || !runPipeline(policy->pipeline(), *one, context))
        return {Finding::Kind::Fails, quiet.first ? quiet.first->message : ""};
      transports = policy->transports;
    }
    auto whole = withMessages(program, first, second, isPlaced);
    if (!whole)
      return {Finding::Kind::Unknown, "the order of messages does not settle"};
    if (evidence) {
      evidence->carried = *whole;
      evidence->carried.head = &evidence->head.head();
      evidence->preconnect = second.preconnect();
    }
    Durations firstTimes(first), secondTimes(second);
    ProgramIndex firstIndex(first), secondIndex(second);
    MessageIndex firstMessages(first, firstIndex),
        secondMessages(second, secondIndex);
    for (const Transport &transport : transports) {
      Checker checker(*whole, &transport);
      if (Finding finding = checker.complete(); !finding)
        return {Finding::Kind::Unknown, finding.why};
      if (Finding finding = checker.matched(); !finding)
        return finding;
      Finding finding;
      auto order = orderBy(*whole, checker, &transport, first, firstIndex,
                           &firstMessages, second, secondIndex, &secondMessages,
                           finding);
      if (!finding)
        return {Finding::Kind::Unknown, finding.why};
      if (evidence)
        evidence->shown.push_back({transport.name, *order});
      if (&transport == &transports.front() && hasPlainTimes(first)) {
        auto run = [&](const Program &one, const ProgramIndex &index,
                       const MessageIndex &messages, const Durations &times) {
          return timesOf(simulate(one, index, messages, times, transport));
        };
        makespan =
            formulaOf(family, *whole, checker,
                      run(first, firstIndex, firstMessages, firstTimes),
                      run(second, secondIndex, secondMessages, secondTimes),
                      first, firstTimes);
        auto run2 = request.explains
                        ? simulate(second, secondIndex, secondMessages,
                                   secondTimes, transport)
                        : std::nullopt;
        if (run2)
          figures =
              figuresOf(family, *whole, durationsOf(*whole, first, firstTimes),
                        second, *run2);
      }
    }
    return {};
  }

  std::optional<Formula> makespanByData(const Family &family,
                                        const proof::Template &program,
                                        const Checker &checker,
                                        const Program &first,
                                        const Program &second) {
    if (!hasPlainTimes(first) || first.costs().hasMessageTimes())
      return std::nullopt;
    Durations firstTimes(first), secondTimes(second);
    return formulaOf(
        family, program, checker,
        timesOf(simulate(first, ProgramIndex(first), firstTimes)),
        timesOf(simulate(second, ProgramIndex(second), secondTimes)), first,
        firstTimes);
  }

  static std::optional<RowTimes> timesOf(std::optional<Simulation> run) {
    if (!run)
      return std::nullopt;
    return RowTimes{std::move(run->starts), std::move(run->ends)};
  }

  /// Whether costs are the same for all microbatches.
  static bool hasPlainTimes(const Program &program) {
    return !program.costs().has({Cost::Scale, Cost::ScaleTime,
                                 Cost::ScaleAction, Cost::ScaleBytes}) &&
           !Durations(program).hasSlack();
  }

  std::optional<Formula>
  formulaOf(const Family &family, const proof::Template &program,
            const Checker &checker, const std::optional<RowTimes> &first,
            const std::optional<RowTimes> &second, const Program &sample,
            const Durations &durations) {
    if (evidence)
      evidence->times = std::nullopt;
    auto times = first && second ? fit(program, *first, *second) : std::nullopt;
    if (!times)
      return std::nullopt;
    auto ofRows = durationsOf(program, sample, durations);
    auto makespan = checker.makespan(*times, ofRows);
    if (!makespan)
      return std::nullopt;
    if (evidence) {
      evidence->times = std::move(times);
      evidence->durations = std::move(ofRows);
    }
    Formula result = formula(family, makespan->value, cost::unit);
    result.isExact = makespan->isExact;
    return result;
  }

  const ProveRequest &request;
  Session &session;
  const Checked &checked;
  const sema::Module &module;
  const sema::Schedule &schedule;
  const uint32_t param;
  Proof &proof;
  Layouter layouter;
  bool hasWhile = false, ordersGlobally = false, failed = false;
  bool isPlaced = true; ///< The messages of what is judged now.
  int64_t stages = 64, ranks = 1, rowsLeft = mostRows;
  std::vector<Task> tasks;
  int wrongInRow = 0; ///< Of the numbers that were looked at last.
  bool isProbe = false, hasSettled = false;
  std::map<int64_t, int64_t> settled;        ///< By step: the first number.
  std::shared_ptr<proof::Evidence> evidence; ///< Of what is judged now.
};

} // namespace

std::optional<Proof> ppcc::prove(const ProveRequest &request, Session &session,
                                 std::string &misuse) {
  Request parsed = request.compile;
  parsed.until = Request::Until::Checked;
  parsed.params.push_back({request.free, "1"});
  Compiled compiled = compile(parsed, session);
  misuse = compiled.misuse;
  if (!compiled)
    return std::nullopt;
  const Checked &checked = *compiled.checked;
  const sema::Schedule *schedule = checked.selection.schedule;
  std::vector<StringRef> ints;
  std::optional<uint32_t> param;
  for (auto [i, one] : llvm::enumerate(schedule->params))
    if (one.type == sema::Type::Int) {
      ints.push_back(one.decl->name.text);
      if (one.decl->name.text == request.free)
        param = i;
    }
  if (!param) {
    session.diags.report<diag::NoFreeParameter>({}, schedule->decl->name.text,
                                                request.free,
                                                didYouMean(request.free, ints));
    return std::nullopt;
  }
  for (const sema::ParamValue &value : request.compile.params)
    if (value.name == request.free) {
      session.diags.report<diag::FreeParameterGiven>(Place("-D " + value.name),
                                                     value.name);
      return std::nullopt;
    }
  Proof proof;
  proof.schedule = schedule->decl->name.text.str();
  // The other parameters, and what is wrong with them.
  {
    size_t before = session.diags.errorCount();
    for (const sema::ScheduleParam &one : schedule->params) {
      StringRef name = one.decl->name.text;
      auto given = llvm::find_if(request.compile.params, [&](auto &value) {
        return value.name == name;
      });
      if (given != request.compile.params.end())
        proof.params.push_back(
            {name.str(), sema::typeName(one.type).str(), given->value});
      else if (!one.decl->defaultValue && name != request.free)
        session.diags.report<diag::MissingParameter>(one.decl->name.range,
                                                     name);
    }
    for (const sema::ParamValue &value : request.compile.params)
      if (!hasParameter(value.name, ownersOf(checked.selection)))
        session.diags.report<diag::UnknownParameter>(
            Place("-D " + value.name), proof.schedule, value.name, "");
    if (session.diags.errorCount() != before)
      return std::nullopt;
  }
  if (request.byData)
    proof.transports.push_back("data");
  for (const Transport &transport : request.compile.comm.transports)
    proof.transports.push_back(transport.name);
  if (proof.transports.empty()) {
    const sema::Section *cluster = checked.selection.cluster;
    if (cluster && cluster->transport)
      for (const ast::Entry &entry : cluster->transport->entries)
        proof.transports.push_back(entry.text.text.str());
    if (proof.transports.empty())
      proof.transports.push_back("stream");
  }
  if (!Prover(request, session, checked, *param, proof).run())
    return std::nullopt;
  return proof;
}
