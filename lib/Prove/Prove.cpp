// Divides the numbers of microbatches into ranges about which one thing can be
// proven, or that are small enough to look at each number.
#include "ppcc/Basic/Diagnostics/Prove.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"

#include "Ranges.h"
#include "TemplateProver.h"
#include "ppcc/Analysis/Report/MemoryCurve.h"
#include "ppcc/Support/CheckedInt.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;
using namespace ppcc::family;
using proof::Checker;
using proof::Finding;

StringRef ppcc::verdictName(Verdict verdict) {
  static constexpr StringRef names[] = {"valid", "invalid", "excluded",
                                        "undecided"};
  return names[static_cast<size_t>(verdict)];
}

bool Proof::isValid() const {
  bool isAnyValid = false;
  for (const ProvenRange &range : ranges) {
    if (range.verdict != Verdict::Valid && range.verdict != Verdict::Excluded)
      return false;
    isAnyValid |= range.verdict == Verdict::Valid;
  }
  return isAnyValid;
}

namespace {

/// Rows that may be laid out for numbers that are looked at one by one.
constexpr int64_t maxEnumeratedRows = 12'000'000;
/// Rows that are looked at, of all instances, and of templates so often as
/// these are more work.
constexpr int64_t maxWork = 40'000'000, workPerTemplateRow = 100;
/// How often the first number of a family is raised, so that what happens
/// before its loops settles.
constexpr int maxBaseRaises = 9;
constexpr int maxSplits = 200;
constexpr int64_t maxStep = 4096;

struct Task {
  Family family;
  PeelHints hints{};
  int baseRaises = 0, splits = 0, doublings = 0, peels = 0;
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
      : request(request), module(checked.module),
        schedule(*checked.selection.schedule), param(param), proof(proof),
        compiler(request, session, checked) {
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
    while (!tasks.empty() && !compiler.failed) {
      Task task = std::move(tasks.back());
      tasks.pop_back();
      if (!isRequested(task.family))
        continue;
      if (isOverBudget()) {
        addOverBudget(task.family, 0);
        continue;
      }
      try {
        process(task);
      } catch (const std::overflow_error &) {
        giveUp(std::move(task), "numbers become too large", Location());
      }
    }
    if (compiler.failed)
      return false;
    llvm::sort(proof.ranges, [](const ProvenRange &a, const ProvenRange &b) {
      return a.from < b.from;
    });
    if (request.certifies)
      proof.unmerged = proof.ranges;
    mergeResidues(proof.ranges);
    llvm::stable_sort(proof.ranges,
                      [](const ProvenRange &a, const ProvenRange &b) {
                        return a.from < b.from;
                      });
    return true;
  }

private:
  /// Whether somebody wants to know of a number of the family.
  bool isRequested(const Family &family) const {
    int64_t after = request.only.value_or(family.base) - family.base;
    return after >= 0 && after % family.step == 0 &&
           (family.last == proof::unbounded ||
            after / family.step <= family.last);
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
    if (last != proof::unbounded)
      range.to = number(family, last);
    if (last == first)
      std::tie(range.modulus, range.residue) = std::pair(1, 0);
    return range;
  }

  void addRange(const Family &family, int64_t first, Verdict verdict,
                std::string reason, Location place,
                std::optional<Formula> makespan = std::nullopt,
                std::optional<Metrics> metrics = std::nullopt,
                const ProofArtifacts &artifacts = {}) {
    if (isProbe) {
      hasSettled = verdict == Verdict::Valid && makespan && makespan->isExact;
      return;
    }
    if (!isRequested(from({family}, first).family))
      return;
    ProvenRange range = rangeOf(family, first, family.last);
    range.verdict = verdict;
    range.reason = std::move(reason);
    range.place = std::move(place);
    range.makespan = makespan;
    range.metrics = std::move(metrics);
    range.evidence = artifacts.evidence;
    range.programs = artifacts.programs;
    if (range.metrics && range.metrics->work && makespan) {
      const Formula &work = *range.metrics->work;
      range.metrics->bubble = Formula{
          makespan->slope * ranks - work.slope,
          makespan->intercept * ranks - work.intercept, makespan->isExact};
    }
    proof.ranges.push_back(std::move(range));
  }

  /// The numbers from `n` on.
  static Task from(Task task, int64_t n) {
    task.family.base = number(task.family, n);
    if (task.family.last != proof::unbounded)
      task.family.last -= n;
    return task;
  }

  /// Every so many-th.
  static Task everyNth(Task task, int64_t factor) {
    task.family.step *= factor;
    if (task.family.last != proof::unbounded)
      task.family.last /= factor;
    return task;
  }

  /// Those before `n`.
  static Task before(Task task, int64_t n) {
    task.family.last = n - 1;
    return task;
  }

  // ---- What it takes ----

  bool isOverBudget() const { return work < 0; }
  /// Counts so many rows.
  void spendWork(__int128 rows) {
    work -= static_cast<int64_t>(std::min<__int128>(rows, maxWork));
  }
  void addOverBudget(const Family &family, int64_t first) {
    addRange(family, first, Verdict::Undecided,
             fmt::format("more than {} rows of programs would be looked at",
                         maxWork),
             Location());
  }

  __int128 rowsOf(const Family &family) const {
    return (__int128(family.base) + number(family, family.last)) *
           (__int128(family.last) + 1) / 2 * stages * 6;
  }
  bool isEnumerable(const Family &family) const {
    return family.last != proof::unbounded && family.last < 100'000 &&
           // One number is looked at, whatever was spent on others.
           rowsOf(family) <= (family.last == 0 ? maxEnumeratedRows : rowsLeft);
  }

  // ---- One by one ----

  /// Looks at each number of a family.
  void checkInstances(const Family &family) {
    if (request.only || isProbe)
      return;
    rowsLeft -= static_cast<int64_t>(rowsOf(family));
    for (int64_t n = 0; n <= family.last && !compiler.failed; ++n) {
      if (isOverBudget())
        return addOverBudget(family, n);
      spendWork(rowsOf({param, number(family, n), 1, 0}));
      checkInstances(number(family, n));
    }
  }

  void checkInstances(int64_t m) {
    CapturedDiagnostics quiet;
    auto program = compiler.compile(m, true, quiet);
    Family one{param, m, 1, 0};
    wrongInSuccession = program ? 0 : wrongInSuccession + !quiet.isExcluded;
    if (!program) {
      if (!compiler.failed)
        addRange(one, 0,
                 quiet.isExcluded ? Verdict::Excluded : Verdict::Invalid,
                 quiet.message(), quiet.place());
      return;
    }
    tailHashes[m] = tailHash(*program);
    static const Transport none;
    auto policy = compiler.policyFor(*program, quiet.diags);
    Program bare;
    bool isBare = request.dataOnly && program->firstMessage();
    if (isBare) {
      CapturedDiagnostics other;
      if (auto again = compiler.compile(m, false, other))
        bare = std::move(*again);
    }
    const Program &run = isBare ? bare : *program;
    const TimedRun *timing = Analyses(run).timedRun(
        request.dataOnly ? none : policy->transports.front(), quiet.diags);
    std::optional<Formula> makespan;
    if (timing)
      makespan =
          Formula{{}, Rational(timing->simulation.makespan, cost::unit), true};
    ProofArtifacts artifacts;
    if (request.certifies)
      artifacts = artifactsOf(m, *program, policy->transports, request.dataOnly,
                              compiler);
    std::optional<Metrics> metrics;
    if (request.explains) {
      ranks = program->numRanks();
      metrics = metricsOf(run, timing);
    }
    addRange(one, 0, Verdict::Valid, "", Location(), makespan,
             std::move(metrics), artifacts);
  }

  // ---- Many at once ----

  Outcome expandSymbolically(const Family &family, const sema::Instance *sample,
                             ArrayRef<TripCounts> counts,
                             const PeelHints &hints,
                             TripCounts *counted = nullptr) {
    spendWork(workPerTemplateRow * (stages + 100));
    return family::expandSymbolically(module, schedule, request.compile.params,
                                      family, sample, counts, hints, counted);
  }

  void process(Task task) {
    const Family &family = task.family;
    if (isEnumerable(family) && (family.last < 3 || task.splits > 0))
      return checkInstances(family);
    Outcome outcome = expandSymbolically(family, nullptr, {}, task.hints);
    if (outcome.kind != Outcome::Kind::Expanded)
      return handleOutcome(std::move(task), std::move(outcome));
    skipUnsettled(task);
    CapturedDiagnostics quiet;
    sema::Evaluator evaluator(module, quiet.diags,
                              request.compile.limits.maxSteps());
    auto sample = compiler.instantiate(family.base, evaluator, quiet);
    // No placement depends on n, so that an error of it is one of all.
    if (!sample && quiet.first && quiet.first->id == diag::StageOnNoRank)
      return addRange(family, 0, Verdict::Invalid, quiet.first->message,
                      quiet.first->place);
    if (!sample) {
      outcome.kind = Outcome::Kind::CaseSplit;
      outcome.value = 1;
      outcome.why = quiet.message();
      outcome.place = quiet.first ? quiet.first->place.range : SourceRange();
      return handleOutcome(std::move(task), std::move(outcome));
    }
    stages = 0;
    for (const Pipe &pipe : sample->program.pipes)
      stages += pipe.numStages();
    ranks = sample->program.numRanks;
    if (request.only && *request.only < 16 * ranks * ranks)
      return tasks.clear();
    std::vector<TripCounts> counts(hasWhile ? 3 : 0);
    for (auto [n, ofN] : llvm::enumerate(counts))
      expandSymbolically({param, number(family, n), family.step, 0}, &*sample,
                         {}, {}, &ofN);
    outcome = expandSymbolically(family, &*sample, counts, task.hints);
    if (outcome.kind != Outcome::Kind::Expanded)
      return handleOutcome(std::move(task), std::move(outcome));
    dropUnusedKinds(sample->program, outcome.program);
    outcome.program.head = &sample->program;
    proveTemplate(std::move(task), outcome.program);
  }

  /// Goes on after a layout that did not come to its end.
  void handleOutcome(Task task, Outcome outcome) {
    const Family family = task.family;
    switch (outcome.kind) {
    case Outcome::Kind::Excluded:
      return addRange(family, 0, Verdict::Excluded, outcome.why, outcome.place);
    case Outcome::Kind::Invalid: {
      CapturedDiagnostics quiet;
      if (compiler.compile(number(family, outcome.value), false, quiet) ||
          compiler.failed)
        return giveUp(std::move(task),
                      "an instance is not as was predicted: " + outcome.why,
                      outcome.place);
      if (outcome.value > 0)
        tasks.push_back(before(task, outcome.value));
      return addRange(family, outcome.value, Verdict::Invalid, outcome.why,
                      outcome.place);
    }
    case Outcome::Kind::CaseSplit: {
      if (++task.splits > maxSplits || outcome.value > family.last ||
          outcome.value > INT64_MAX / 4 / family.step)
        return giveUp(std::move(task), outcome.why, outcome.place);
      Task upper = from(task, outcome.value);
      // An error in the middle of a loop shows when its window begins
      // elsewhere.
      if (wrongInSuccession >= 12) {
        wrongInSuccession = 0;
        upper.family.peeledSide = upper.family.peeledSide == PeeledSide::Behind
                                      ? PeeledSide::Before
                                      : PeeledSide::Behind;
      }
      if (!outcome.hints.empty())
        upper.hints = outcome.hints;
      tasks.push_back(std::move(upper));
      tasks.push_back(before(std::move(task), outcome.value));
      return;
    }
    case Outcome::Kind::Retry:
      task.hints = outcome.hints;
      if (++task.splits > maxSplits)
        return giveUp(std::move(task), outcome.why, outcome.place);
      tasks.push_back(std::move(task));
      return;
    case Outcome::Kind::ResidueSplit:
      return splitByResidue(std::move(task), outcome.value, outcome.why,
                            outcome.place);
    case Outcome::Kind::Expanded:
    case Outcome::Kind::Undecided:
      if (hasWhile && task.doublings++ < 2)
        return splitByResidue(std::move(task), 2, outcome.why, outcome.place);
      return giveUp(std::move(task), outcome.why, outcome.place);
    }
  }

  /// Makes a family of each remainder.
  void splitByResidue(Task task, int64_t factor, const std::string &why,
                      Location place) {
    if (factor < 2 || task.family.step * factor > maxStep)
      return giveUp(std::move(task), why, std::move(place));
    for (int64_t n = factor; n-- > 0;)
      if (n <= task.family.last)
        tasks.push_back(everyNth(from(task, n), factor));
  }

  void giveUp(Task task, std::string why, Location place) {
    if (isEnumerable(task.family))
      return checkInstances(task.family);
    addRange(task.family, 0, Verdict::Undecided, std::move(why),
             std::move(place));
  }

  /// Looks at some of the first numbers, so that the others begin later. False
  /// where that was done too often.
  bool raiseBase(Task &task) {
    int64_t some = std::max<int64_t>(1, ranks * (task.baseRaises + 1) /
                                            (4 * task.family.step));
    Task few = before(task, some);
    if (task.baseRaises >= maxBaseRaises || some > task.family.last ||
        !isEnumerable(few.family))
      return false;
    ++task.baseRaises;
    tasks.push_back(from(task, some));
    checkInstances(few.family);
    return true;
  }

  /// Whether the numbers of one remainder settle into an order, with its exact
  /// makespan.
  bool settles(Task task, int64_t factor) {
    if (isProbe)
      return false;
    task.baseRaises = maxBaseRaises;
    auto outer = std::exchange(tasks, {});
    isProbe = true;
    hasSettled = false;
    try {
      process(everyNth(std::move(task), factor));
    } catch (const std::overflow_error &) {
      hasSettled = false;
    }
    isProbe = false;
    tasks = std::move(outer);
    return hasSettled;
  }

  /// Where others of so many remainders begin to settle, so that this one need
  /// not be tried before.
  void skipUnsettled(Task &task) {
    auto known = settled.find(task.family.step);
    if (known == settled.end() || task.baseRaises != 0 || isProbe)
      return;
    int64_t some = (known->second - task.family.base) / task.family.step;
    if (some < 1 || some > task.family.last ||
        !isEnumerable(before(task, some).family))
      return;
    checkInstances(before(task, some).family);
    task = from(std::move(task), some);
    ++task.baseRaises;
  }

  void proveTemplate(Task task, proof::Template &program) {
    const Family family = task.family;
    if (family.last < 3)
      return giveUp(std::move(task), "", Location());
    spendWork(workPerTemplateRow * 1000);
    for (const auto &rows : program.ranks)
      spendWork(workPerTemplateRow * rows.size());
    auto dataChecker = Checker::of(program, nullptr);
    Finding whole = dataChecker->checkComplete();
    if (whole.kind == Finding::Kind::Fails) {
      CapturedDiagnostics quiet;
      if (!compiler.compile(family.base, true, quiet) && !compiler.failed)
        return addRange(family, 0, Verdict::Invalid, whole.why, quiet.place());
      return giveUp(std::move(task), "an instance is not as was predicted", {});
    }
    if (!whole)
      return task.doublings++ < 1 && family.step <= 64
                 ? splitByResidue(std::move(task), 2, whole.why, {})
                 : giveUp(std::move(task), whole.why, Location());

    CapturedDiagnostics quiet;
    auto first = compiler.compile(number(family, 1), false, quiet),
         second = compiler.compile(number(family, 2), false, quiet);
    if (compiler.failed)
      return;
    // Costs do not depend on the number.
    if (quiet.first && quiet.first->id == diag::RestoresTooMuch)
      return addRange(family, 0, Verdict::Invalid, quiet.message(),
                      quiet.place());
    if (!first || !second || !isInstance(program, 1, *first) ||
        !isInstance(program, 2, *second))
      return giveUp(std::move(task), "an instance is not as was predicted",
                    quiet.place());
    auto [why, place] = compiler.unsupported(*first, ordersGlobally);
    if (why.empty() && mayMoveTwice(*first))
      why = "several kinds of actions move activations, or restore them";
    if (!why.empty())
      return giveUp(std::move(task), why, place);
    auto model = modelOf(*first, program);
    if (checkMemoryLimit(task, program, *first, model->costs))
      return;
    TemplateProver proveTemplate{request, compiler,     family,
                                 program, *dataChecker, *first,
                                 *second, model->costs, ProofArtifacts()};
    if (request.certifies) {
      setSites(program, *first);
      proveTemplate.artifacts =
          ProofArtifacts::of(family.base, family.step, *first, program, model);
      proveTemplate.artifacts.programs->secondParams = second->params();
    }
    std::optional<Metrics> metrics;
    if (request.explains)
      metrics = metricsOf(family, program, model->costs, *second);
    bool isDataOnly = request.dataOnly || request.certifies;
    auto checkDataDependences = [&] {
      Finding ordered = proveTemplate.checkDataDependences();
      if (proveTemplate.cycle)
        foundCycle(task, program, *proveTemplate.cycle,
                   proveTemplate.artifacts);
      else if (!ordered && !raiseBase(task))
        giveUp(task, ordered.why, Location());
      return bool(ordered);
    };
    if (isDataOnly && !checkDataDependences())
      return;
    if (request.dataOnly && request.compile.comm.transports.empty())
      return addRange(family, 0, Verdict::Valid, "", Location(),
                      proveTemplate.dataMakespan(), std::move(metrics),
                      proveTemplate.artifacts);
    Finding messageFinding = proveTemplate.checkMessages();
    // An order of events with messages is one by data, too.
    if (!messageFinding && !isDataOnly && !checkDataDependences())
      return;
    std::optional<Formula> makespan = proveTemplate.makespan;
    if (request.dataOnly)
      makespan = proveTemplate.dataMakespan();
    if (!messageFinding || !makespan || !makespan->isExact) {
      // Ranks may take turns in what they do first, or messages in a rhythm.
      for (auto [baseRaises, step] :
           {std::pair(1, ranks),
            {3, 2 * ranks},
            {2, family.step == 1 ? periodOf(proof.ranges, family.base) : 1},
            {3, family.step == 1 ? periodOf(tailHashes, family.base) : 1}})
        if (int64_t factor = step / std::gcd(step, family.step);
            task.baseRaises >= baseRaises && factor != 1 &&
            family.last > 8 * ranks && family.step * factor <= maxStep &&
            settles(task, factor))
          return splitByResidue(std::move(task), factor, messageFinding.why,
                                {});
      if (raiseBase(task))
        return;
    }
    if (messageFinding && !proveTemplate.hasFixedSites &&
        proveTemplate.artifacts && task.peels++ < 3 && family.last > 8 &&
        isEnumerable(before(task, 2).family)) {
      checkInstances(before(task, 2).family);
      proof::Template inner = peeled(program);
      return this->proveTemplate(from(std::move(task), 2), inner);
    }
    if (messageFinding.kind == Finding::Kind::Fails ||
        (!messageFinding && !ordersGlobally))
      return giveUp(std::move(task), messageFinding.why, Location());
    if (messageFinding && family.step > 1) {
      // Where one did not settle at first, its neighbour will not either.
      int64_t from = family.base + (task.baseRaises > 0 ? family.step - 1 : 0);
      settled[family.step] = std::max(settled[family.step], from);
    }
    if (!messageFinding && proveTemplate.artifacts) {
      proveTemplate.artifacts.evidence->withMessages =
          proveTemplate.artifacts.programs->withMessages = {};
      proveTemplate.artifacts.evidence->orderWitnesses.resize(1);
    }
    if (metrics)
      metrics->bottleneck = std::move(proveTemplate.bottleneck);
    addRange(family, 0, Verdict::Valid,
             messageFinding ? ""
                            : "by data dependences; valid with the chosen "
                              "order of messages (" +
                                  messageFinding.why + ")",
             Location(), makespan, std::move(metrics), proveTemplate.artifacts);
  }

  /// Whether the limits of memory were all that there was to say, or what is to
  /// be said of parts of the family.
  bool checkMemoryLimit(const Task &task, const proof::Template &program,
                        const Program &sample, const proof::Costs &costs) {
    if (!sample.costs().has({Cost::MemoryLimit}))
      return false;
    auto memoryDeltas = memoryDeltasOf(program, costs);
    if (!memoryDeltas) {
      giveUp(task,
             "the memory of microbatches differs, or the effect of declared "
             "actions on it is not determined",
             Location());
      return true;
    }
    int64_t splitAt = 0; // The n from which on a rank fits, or does not.
    // A rank that holds too much for all n, and how much: the most.
    std::optional<std::pair<proof::Affine, uint32_t>> over;
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
      for (proof::Affine peak :
           proof::peaksOf(program.ranks[rank], (*memoryDeltas)[rank])) {
        proof::Affine left = memoryBudgetOf(costs, rank) - peak;
        bool fits = left.c >= 0;
        int64_t n = fits && left.n < 0    ? left.c / -left.n + 1
                    : !fits && left.n > 0 ? -*floorDiv(left.c, left.n)
                                          : 0;
        if (n > 0 && n <= program.last)
          splitAt = splitAt == 0 ? n : std::min(splitAt, n);
        if (!fits && left.n <= 0 &&
            (!over || std::pair(peak.n, peak.c) >
                          std::pair(over->first.n, over->first.c)))
          over = {peak, rank};
      }
    if (over) {
      auto [peak, rank] = *over;
      Amount limit = *MemoryModel(sample).limitOf(RankId(rank));
      peak = peak + (limit - memoryBudgetOf(costs, rank));
      addRange(task.family, 0, Verdict::Invalid,
               fmt::format(
                   "rank {} holds {}, above its limit of {}", rank,
                   formula(task.family, peak, amount::unit).text(request.free),
                   amount::format(limit)),
               Location());
    } else if (splitAt != 0) {
      handleOutcome(task, {.kind = Outcome::Kind::CaseSplit,
                           .value = splitAt,
                           .hints = task.hints,
                           .place = {},
                           .why = "memory is limited",
                           .program = {}});
    }
    return over || splitAt != 0;
  }

  void foundCycle(const Task &task, const proof::Template &program,
                  const TemplateProver::Cycle &cycle,
                  const ProofArtifacts &artifacts) {
    const auto &[events, from] = cycle;
    std::vector<uint32_t> ranks;
    for (const proof::Event &event : events)
      if (!llvm::is_contained(ranks, event.rank))
        ranks.push_back(event.rank);
    const proof::Row &row = program.ranks[events[0].rank][events[0].row];
    SourceLoc at;
    at.raw = row.sourceLoc;
    if (artifacts)
      artifacts.evidence->cycle = events;
    addRange(
        task.family, from, Verdict::Invalid,
        ranks.size() == 1
            ? fmt::format("rank {} waits for itself", ranks[0])
            : fmt::format("ranks {} wait in a cycle", fmt::join(ranks, ", ")),
        Location(at), std::nullopt, std::nullopt, artifacts);
    if (from > 0)
      checkInstances(before(task, from).family);
  }

  const ProveRequest &request;
  const sema::Module &module;
  const sema::Schedule &schedule;
  const uint32_t param;
  Proof &proof;
  InstanceCompiler compiler;
  bool hasWhile = false, ordersGlobally = false;
  int64_t stages = 64, ranks = 1, rowsLeft = maxEnumeratedRows, work = maxWork;
  std::vector<Task> tasks;
  int wrongInSuccession = 0; ///< Of the numbers that were looked at last.
  bool isProbe = false, hasSettled = false;
  std::map<int64_t, int64_t> settled; ///< By step: the first number.
  std::map<int64_t, size_t>
      tailHashes; ///< By number: how the lists of ranks end.
};

} // namespace

std::optional<Proof> ppcc::prove(const ProveRequest &request, Session &session,
                                 std::string &usageError) {
  auto parsed = readRequest(request, session, usageError);
  if (!parsed || !Prover(request, session, *parsed->compiled.checked,
                         parsed->free.front(), parsed->proof)
                      .run())
    return std::nullopt;
  return std::move(parsed->proof);
}
