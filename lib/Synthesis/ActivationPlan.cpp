// How stages save what their gradients need: which compute it again or bring it
// to the host, and for which microbatches.
#include "SynthesisContext.h"

#include "llvm/ADT/Sequence.h"

using namespace ppcc;
using namespace ppcc::synthesis;

using ActivationPolicy = Workload::ActivationPolicy;
using enum Workload::Part;

namespace {

/// Of the microbatches of a stage, so many at least and at most are saved.
struct ShareRange {
  uint32_t min, max;
};

/// The work with each stage in up to three parts, by the microbatches that are
/// kept, may be saved, which then costs no time, and are saved.
Workload split(const Workload &kept, const Workload &saved,
               ArrayRef<ShareRange> shares) {
  Workload load;
  load.memoryBudget = kept.memoryBudget;
  load.backward = kept.backward;
  load.ofRank.resize(kept.ofRank.size());
  std::vector<uint32_t> first;
  for (auto [share, one, other] :
       llvm::zip(shares, kept.stages, saved.stages)) {
    first.push_back(load.stages.size());
    auto add = [&](const Workload::Stage &from, uint32_t count, Time free) {
      if (count == 0 &&
          (from.microbatches != 0 || first.back() != load.stages.size()))
        return;
      Workload::Stage part = from;
      // What is computed again may be while the gradient is on its way.
      part.time[I] -= from.recomputeTime;
      part.work[I] -= free;
      part.maxWork[I] -= free;
      part.microbatches = count;
      for (unsigned i = 0; i != Workload::numParts; ++i)
        part.sum[i] = part.work[i] * count;
      load.ofRank[part.rank.value].push_back(load.stages.size());
      load.stages.push_back(std::move(part));
    };
    add(one, one.microbatches - share.max, 0);
    add(other, share.max - share.min, other.recomputeTime);
    add(other, share.min, 0);
  }
  // Those that are quickest come first.
  for (Workload::Stage &stage : load.stages)
    for (auto *edges : {&stage.below, &stage.above})
      for (Workload::Edge &edge : *edges)
        edge.stage = first[edge.stage];
  return load;
}

/// That the copies of a rank follow one another.
ResourceBound boundOfCopies(const Workload &saved, ArrayRef<ShareRange> shares,
                            RankId rank, ArrayRef<Time> firstF, bool isSpan) {
  constexpr Time far = std::numeric_limits<Time>::max() / 4;
  ResourceBound bound;
  bound.kind = ResourceBound::Kind::Copies;
  bound.rank = rank;
  Time begin = far, head = far, tail = far;
  for (uint32_t s : saved.ofRank[rank.value]) {
    const Workload::Stage &stage = saved.stages[s];
    begin = std::min(begin, firstF[s]);
    head = std::min(head, firstF[s] + stage.time[F]);
    tail = std::min(tail, stage.copyIn + stage.time[I]);
    bound.work += stage.copyOut * shares[s].min;
  }
  if (bound.work == 0)
    return {};
  bound.head = head - (isSpan ? begin : 0);
  bound.tail = tail;
  bound.time = bound.head + bound.work + bound.tail;
  return bound;
}

/// Each stage in the way in which it holds least.
Workload minMemoryVariant(const ActivationPlan &plan) {
  Workload least = plan.load(plan.policies().front());
  for (ActivationPolicy policy : plan.policies())
    for (auto [one, other] : llvm::zip(least.stages, plan.load(policy).stages))
      if (other.heldAfterF() < one.heldAfterF())
        one = other;
  return least;
}

/// Of the choices within these shares, what none of a rank's is better than.
ResourceBound boundOf(const ActivationPlan &plan, const Workload &saved,
                      ArrayRef<ShareRange> shares, RankId rank,
                      ArrayRef<Time> firstF, Objective objective) {
  ResourceBound bound =
      resourceBoundOf(split(plan.kept(), saved, shares), rank, objective);
  ResourceBound copies =
      boundOfCopies(saved, shares, rank, firstF, objective == Objective::Span);
  return copies.time > bound.time ? copies : bound;
}

std::vector<ShareRange> unrestrictedShares(const Workload &load) {
  std::vector<ShareRange> shares;
  for (const Workload::Stage &stage : load.stages)
    shares.push_back({0, stage.microbatches});
  return shares;
}

/// What no choice is better than: of the choices of each rank the least, in
/// ranges, as if the others saved in no time.
ResourceBound boundOfAll(const ActivationPlan &plan, ArrayRef<Time> firstF,
                         Objective objective) {
  constexpr uint64_t maxChoices = 256;
  const Workload &load = plan.kept();
  const Workload saved = minMemoryVariant(plan);
  const std::vector<ShareRange> all = unrestrictedShares(load);
  ResourceBound bound;
  for (RankId rank : firstIds<RankId>(load.ofRank.size())) {
    ArrayRef<uint32_t> own = load.ofRank[rank.value];
    if (own.empty())
      continue;
    uint64_t steps = maxChoices, choices = 1;
    while (steps > 1 && std::pow(steps, own.size()) > maxChoices)
      --steps;
    if (plan.policies().size() > 1)
      steps = 1;
    for (size_t i = 0; i != own.size(); ++i)
      choices *= steps;
    std::optional<ResourceBound> least;
    for (uint64_t choice = 0; choice != choices; ++choice) {
      std::vector<ShareRange> shares = all;
      uint64_t rest = choice;
      for (uint32_t s : own) {
        uint64_t count = load.stages[s].microbatches + 1, step = rest % steps;
        rest /= steps;
        uint64_t begin = count * step / steps, end = count * (step + 1) / steps;
        // Where there are fewer counts than steps, some are there twice.
        shares[s] = {uint32_t(begin), uint32_t(std::max(begin + 1, end) - 1)};
      }
      ResourceBound one = boundOf(plan, saved, shares, rank, firstF, objective);
      if (!least || one.time < least->time)
        least = one;
      if (least->time <= bound.time)
        break;
    }
    if (least->time > bound.time)
      bound = *least;
  }
  return bound;
}

/// A choice with what a quick search makes of it.
struct Choice {
  std::vector<StageActivationPolicy> stages;
  OffloadConfig copies;
  std::optional<Time> value; ///< Nothing where ranks have no room.
  decimal::Sum saved = 0;    ///< Less of it is better.

  bool isBetter(const Choice &other) const {
    return value && (!other.value || std::pair(*value, saved) <
                                         std::pair(*other.value, other.saved));
  }
};

struct ActivationPlanSearch {
  SynthesisContext &context;

  /// Of those that save what is held longest, and of small changes to the best
  /// of them.
  void run() {
    const Workload &load = plan.kept();
    best = evaluate(std::vector<StageActivationPolicy>(load.stages.size()), {});
    SmallVector<uint32_t> stages = byAmount();
    for (ActivationPolicy policy : plan.policies())
      for (OffloadConfig copies : copiesFor(policy)) {
        for (uint32_t percent : {50, 70, 85, 100, 120, 150, 200})
          offer(fitted(policy, percent), copies);
        for (uint32_t n : {8, 4, 2, 6}) {
          std::vector<StageActivationPolicy> prefix(load.stages.size());
          for (uint32_t stage : stages) {
            prefix[stage] = {policy, n};
            offer(prefix, copies);
          }
        }
      }
    for (bool isImproving = true; isImproving && !isDone();) {
      isImproving = false;
      // A rank holds up others that do the same: several change together.
      for (int by : {-1, 1, -2, 2}) {
        std::vector<StageActivationPolicy> changed = best.stages;
        for (StageActivationPolicy &one : changed)
          change(one, one.policy, by);
        isImproving |= offer(changed, best.copies);
      }
      for (int by : {-1, 1})
        for (uint32_t OffloadConfig::*part :
             {&OffloadConfig::inFlight, &OffloadConfig::prefetchDistance,
              &OffloadConfig::stagingSlots}) {
          OffloadConfig copies = best.copies;
          copies.*part = std::clamp<int>(int(copies.*part) + by, 1, maxCopies);
          if (llvm::any_of(best.stages, [](StageActivationPolicy one) {
                return one.is(ActivationPolicy::Offload);
              }))
            isImproving |= offer(best.stages, copies);
        }
      for (uint32_t stage = 0; stage != load.stages.size(); ++stage)
        for (ActivationPolicy policy : plan.policies())
          for (int by : {-8, -1, 1, -2, 2, 8}) {
            std::vector<StageActivationPolicy> changed = best.stages;
            change(changed[stage], policy, by);
            isImproving |= offer(changed, best.copies);
          }
    }
    plan.ofStage = best.stages;
    plan.copies = best.copies;
  }

  static constexpr unsigned maxTries = 1000, passesEach = 8, maxCopies = 8;

  bool isDone() const {
    return tries >= maxTries || context.actions > context.budget() / 4 ||
           (context.userRequest.stop && *context.userRequest.stop) ||
           (best.value && *best.value <= context.bound->time);
  }

  static void change(StageActivationPolicy &one, ActivationPolicy policy,
                     int by) {
    int n = (one.policy == policy ? int(one.n) : 0) + by;
    if (policy != ActivationPolicy::Keep)
      one = {policy,
             uint32_t(std::clamp<int>(n, 0, StageActivationPolicy::of))};
  }

  /// Ways to begin with: copies that are back just in time, early enough for
  /// how long they take, and with less room for them.
  std::vector<OffloadConfig> copiesFor(ActivationPolicy policy) const {
    if (policy != ActivationPolicy::Offload)
      return {{}};
    Time longest = 0;
    uint32_t actions = 1;
    for (const auto &stages : plan.kept().ofRank)
      actions = std::max<uint32_t>(actions, 3 * stages.size());
    for (const Workload::Stage &stage : plan.load(policy).stages)
      longest = std::max(longest, stage.copyIn);
    uint32_t prefetchDistance = std::min<decimal::Sum>(
        1 + decimal::Sum(longest) * actions / std::max<Time>(kept.period, 1),
        maxCopies - 2);
    std::vector<OffloadConfig> ways{{2, 1, 3}, {1, 1, 2}};
    if (prefetchDistance > 1)
      ways.insert(ways.end(), {{2, prefetchDistance, prefetchDistance + 2},
                               {2, prefetchDistance, prefetchDistance}});
    return ways;
  }

  /// The stages, that with the most memory and time to its gradient first.
  SmallVector<uint32_t> byAmount() const {
    const Workload &load = plan.kept();
    auto stages = llvm::to_vector(llvm::seq<uint32_t>(load.stages.size()));
    llvm::stable_sort(stages, [&](uint32_t a, uint32_t b) {
      auto live = [&](uint32_t s) {
        return decimal::Sum(load.stages[s].heldAfterF()) * kept.roundTrip[s];
      };
      return live(a) > live(b);
    });
    return stages;
  }

  /// What keeps ranks busy while microbatches are away, or so many hundredths
  /// of it, and does not fit, is saved.
  std::vector<StageActivationPolicy> fitted(ActivationPolicy policy,
                                            uint32_t percent) const {
    const Workload &load = plan.kept();
    std::vector<StageActivationPolicy> stages(load.stages.size());
    for (uint32_t rank = 0; rank != kept.numRanks(); ++rank) {
      decimal::Sum wanted = 0;
      for (uint32_t s : load.ofRank[rank])
        wanted += decimal::Sum(load.stages[s].heldAfterF()) *
                  kept.roundTrip[s] / std::max<Time>(kept.period, 1) * percent /
                  100;
      if (!load.memoryBudget[rank] || wanted <= *load.memoryBudget[rank])
        continue;
      auto n = StageActivationPolicy::of * (wanted - *load.memoryBudget[rank]) /
                   wanted +
               1;
      for (uint32_t s : load.ofRank[rank])
        stages[s] = {policy, std::min(uint32_t(n), StageActivationPolicy::of)};
    }
    return stages;
  }

  bool offer(const std::vector<StageActivationPolicy> &stages,
             OffloadConfig copies) {
    if (isDone() || (stages == best.stages && copies == best.copies))
      return false;
    Choice other = evaluate(stages, copies);
    bool isBetter = other.isBetter(best);
    if (isBetter)
      best = std::move(other);
    return isBetter;
  }

  Choice evaluate(std::vector<StageActivationPolicy> stages,
                  OffloadConfig copies) {
    ++tries;
    Choice choice;
    choice.stages = plan.ofStage = std::move(stages);
    choice.copies = plan.copies = copies;
    for (auto [stage, one] : llvm::zip(plan.kept().stages, plan.ofStage))
      if (one.policy != ActivationPolicy::Keep)
        choice.saved += decimal::Sum(one.n) * (stage.time[F] + 1);
    Problem problem(plan.kept(), context.userRequest.objective, &plan);
    if (!problem.fitsMemory())
      return choice;
    SearchOptions options;
    options.budget = uint64_t(problem.numActions) * passesEach;
    options.refines = false;
    SearchResult found = context.search(problem, {}, std::move(options));
    if (found.order.empty())
      return choice;
    choice.value = found.value;
    // Copies may hold up what the order does not know of.
    if (plan.uses(ActivationPolicy::Offload) &&
        !(best.value && found.value > *best.value))
      choice.value = context.evaluate(problem, found.order, std::nullopt).value;
    return choice;
  }

  ActivationPlan &plan = *context.plan;
  const Problem kept{
      plan.kept(),
      context.userRequest.objective}; ///< With what is kept everywhere.
  Choice best{};
  unsigned tries = 0;
};

} // namespace

SmallVector<ActivationPolicy, 2> ActivationPlan::policies() const {
  SmallVector<ActivationPolicy, 2> policies;
  for (ActivationPolicy policy :
       {ActivationPolicy::Recompute, ActivationPolicy::Offload})
    if (loads[static_cast<size_t>(policy)])
      policies.push_back(policy);
  return policies;
}

ResourceBound synthesis::boundOf(const ActivationPlan &plan,
                                 Objective objective, bool overAllPlans) {
  const Workload &load = plan.kept();
  std::vector<Time> firstF = UncontendedTimes(load).firstF;
  if (overAllPlans)
    return boundOfAll(plan, firstF, objective);
  std::vector<ShareRange> shares = unrestrictedShares(load);
  for (auto [share, one] : llvm::zip(shares, plan.ofStage)) {
    uint32_t count = 0;
    for (uint32_t m = 0; m != share.max; ++m)
      count += one.has(m);
    share = {plan.policies().size() > 1 ? 0 : count, count};
  }
  Workload saved = minMemoryVariant(plan);
  ResourceBound bound;
  for (RankId rank : firstIds<RankId>(load.ofRank.size()))
    if (!load.ofRank[rank.value].empty())
      if (ResourceBound one =
              ::boundOf(plan, saved, shares, rank, firstF, objective);
          one.time > bound.time)
        bound = one;
  return bound;
}

bool synthesis::chooseActivationPlan(SynthesisContext &context) {
  const Program &program = context.program;
  const SynthesisRequest &userRequest = context.userRequest;
  if (program.pipes().size() > 1)
    return context.refuse("with several pipes it cannot choose which "
                          "activations to recompute or offload");
  if (userRequest.recompute && !recomputeKind(program))
    return context.refuse(
        "it has no action that restores F; add `with recompute;`");
  if (userRequest.offload && !offloadKinds(program))
    return context.refuse("it has no actions that copy the activations of F to "
                          "the host and back; add `with offload;`");
  if (!context.instance()) // Without a choice, for what is wrong with it.
    return false;
  ActivationPlan &plan = context.plan.emplace();
  Durations durations(program);
  for (auto [policy, isChoice] :
       {std::pair(ActivationPolicy::Keep, true),
        std::pair(ActivationPolicy::Recompute, userRequest.recompute),
        std::pair(ActivationPolicy::Offload, userRequest.offload)})
    if (isChoice)
      plan.loads[static_cast<size_t>(policy)] =
          Workload::of(program, durations, context.backward(), 1, policy);
  plan.ofStage.resize(plan.kept().stages.size());
  context.bound = boundOf(plan, userRequest.objective, true);
  if (!Problem(plan.kept(), userRequest.objective, &plan).fitsMemory()) {
    // The least that ranks can work with.
    plan.copies = {1, 1, 2};
    plan.ofStage.assign(plan.kept().stages.size(),
                        {plan.policies().front(), StageActivationPolicy::of});
    if (!context.instance())
      return false;
  }
  ActivationPlanSearch{context}.run();
  return true;
}
