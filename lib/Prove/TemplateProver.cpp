// Proves properties of every program of a family by generalizing from two.
//
// A family is the programs of M = base + step * n microbatches, for all n >= 0
// or up to a last one. Its template lists their actions symbolically: numbers
// of microbatches and trip counts of loops are affine in n. The programs of
// n = 1 and n = 2 are simulated; fit() gives each event a time that is affine
// in n, and in the iteration if it is in a loop, and agrees with both runs, or
// finds none. The checker (lib/Proof) then checks that these times increase
// along every dependence for every n, which proves the dependences acyclic.
// Invariant: sound, but incomplete. A Finding is true if proven, and else Fails
// or Unknown; a bad fit gives Unknown, never a wrong proof.
// Cost: at most eight simulations for each order of messages and transport, and
// the checker's work, which is linear in the actions of the template.
// Example: GPipe on 2 ranks, F = 1, B = 2, base 2, step 1. The last B of rank 1
// starts at 8 for M = 3 and at 11 for M = 4; fit() proposes 3 M - 1, and the
// checker confirms or refutes that for every M.
#include "TemplateProver.h"

#include "PlacementProof.h"

#include "ppcc/Proof/Domain.h"

using namespace ppcc;
using proof::Checker;
using proof::Finding;

/// A witness that no rank waits for itself: times that increase along every
/// dependence. Sets `finding` to Fails if the program of n = 1 or n = 2
/// deadlocks, and to Unknown if no witness was found.
static std::optional<proof::Times>
findWitness(const proof::Template &program, const proof::Checker &checker,
            const Transport *transport, const Sample &first,
            const Sample &second, Finding &finding) {
  std::optional<proof::Times> witness;
  // With the costs of the model, or none for data dependences alone; then with
  // one unit for each compute action.
  for (bool hasUnitCosts : {false, true}) {
    auto run = [&](const Sample &of) {
      Program timed = of.program;
      CostModel &costs = timed.editHead().costs;
      if (!transport || hasUnitCosts)
        costs = {};
      if (hasUnitCosts)
        for (KindId kind : timed.kinds().ids())
          if (timed.kinds()[kind].isCompute())
            costs.add(Cost::Action, kind, cost::unit);
      return of.numberEvents(transport, Durations(timed));
    };
    auto a = run(first), b = run(second);
    if (!a || !b) {
      finding = {Finding::Kind::Fails, "a simulated program deadlocks"};
      return std::nullopt;
    }
    witness = fit(program, {a, b});
    finding = witness ? checker.checkAcyclic(*witness)
                      : Finding{Finding::Kind::Unknown,
                                "no affine times fit the simulated programs"};
    if (finding)
      break;
  }
  return witness;
}

/// Whether costs are the same for all microbatches.
static bool hasUniformTimes(const Program &program) {
  return !program.costs().has({Cost::Scale, Cost::ScaleTime, Cost::ScaleAction,
                               Cost::ScaleBytes}) &&
         !Durations(program).hasHookOffsets();
}

/// A cycle of events that wait for each other in every program of n >= `from`,
/// with `from` at most `maxFirst`.
static std::optional<TemplateProver::Cycle>
findCycle(const proof::Template &program, const Checker &checker,
          const Transport *transport, const Sample &first, const Sample &second,
          int64_t maxFirst) {
  for (int64_t n : {1, 2})
    for (bool countsFromEnd : {false, true}) {
      auto events = cycleOf(program, n, n == 1 ? first : second, transport,
                            countsFromEnd);
      for (int64_t from = 0; from <= maxFirst; ++from)
        if (!events.empty() && checker.isCycle(events, from))
          return TemplateProver::Cycle{std::move(events), from};
    }
  return std::nullopt;
}

Finding TemplateProver::checkDataDependences() {
  Sample a(first), b(second);
  Finding finding;
  auto witness = findWitness(program, dataChecker, nullptr, a, b, finding);
  if (finding && artifacts)
    artifacts.evidence->orderWitnesses.push_back({"data", std::move(*witness)});
  if (witness || finding.kind != Finding::Kind::Fails)
    return finding;
  cycle = findCycle(program, dataChecker, nullptr, a, b, /*maxFirst=*/2);
  if (cycle)
    return {Finding::Kind::Fails, ""};
  return {Finding::Kind::Unknown, "no cycle of waits is common to all M"};
}

TemplateProver::MessagePlan
TemplateProver::planMessages(const CommPolicy &policy) {
  MessagePlan result;
  CapturedDiagnostics quiet;
  Program withFirst = first, withSecond = second;
  PlanTimes ofFirst, ofSecond;
  for (auto [one, times] :
       {std::pair(&withFirst, &ofFirst), std::pair(&withSecond, &ofSecond)})
    if (!compiler.addMessages(*one, policy, quiet, times)) {
      result.finding = {Finding::Kind::Fails, quiet.message()};
      return result;
    }
  auto unknown = [&](const std::string &why) {
    result.finding = {Finding::Kind::Unknown, why};
    return result;
  };
  auto whole =
      insertMessages(program, withFirst, withSecond, result.hasFixedSites);
  if (!whole || !proof::haveSameActions(program, *whole))
    return unknown("the order of messages has no pattern that repeats in M");
  result.withMessages = std::move(*whole);
  result.preconnect = withSecond.preconnect();
  Sample a(withFirst, true), b(withSecond, true);
  auto isPlacementProven = [&] {
    bool isPlain = policy.fusion->fusion == Fusion::None && !policy.torch &&
                   !policy.prefetch && policy.order != CommOrder::None;
    return isPlain &&
           (policy.order == CommOrder::Late || hasUniformTimes(first)) &&
           provePlacement({result.withMessages, program, costs, policy.order,
                           ofFirst, ofSecond});
  };
  for (const Transport &transport : policy.transports) {
    auto checker = Checker::of(result.withMessages, &transport);
    if (Finding finding = checker->checkComplete(); !finding)
      return unknown(finding.why);
    if (Finding finding = checker->checkMatching(); !finding)
      return unknown(finding.why);
    Finding finding;
    auto witness =
        findWitness(result.withMessages, *checker, &transport, a, b, finding);
    if (!finding) {
      // bestOf() skips an order that deadlocks for every n.
      result.alwaysDeadlocks = finding.kind == Finding::Kind::Fails &&
                               isPlacementProven() &&
                               findCycle(result.withMessages, *checker,
                                         &transport, a, b, /*maxFirst=*/0);
      return unknown(finding.why);
    }
    result.orderWitnesses.push_back({transport.name, *witness});
    if (&transport != &policy.transports.front() || !hasUniformTimes(withFirst))
      continue;
    result.makespan = makespanBy(result.withMessages, *checker, &transport, a,
                                 b, result.times);
    if (request.explains)
      if (auto run = b.run(&transport))
        result.bottleneck = bottleneckOf(result.withMessages, withSecond, *run);
  }
  result.isPlacementProven = isPlacementProven();
  return result;
}

/// The plan that the compiler chooses in each program of the family: that with
/// the smallest makespan for every n, of equal ones the first. Null if unknown.
const TemplateProver::MessagePlan *
TemplateProver::bestOf(ArrayRef<MessagePlan> all) const {
  proof::Domain whole{0, family.last, false, {}, {}};
  auto isKnown = [](const MessagePlan &one) {
    return one.alwaysDeadlocks || (one.finding && one.isPlacementProven &&
                                   one.makespan && one.makespan->isExact);
  };
  if (!llvm::all_of(all, isKnown))
    return nullptr;
  auto *best = llvm::find_if(all, [&](const MessagePlan &one) {
    return !one.alwaysDeadlocks &&
           llvm::all_of(all, [&](const MessagePlan &other) {
             return other.alwaysDeadlocks ||
                    isAtLeast(other.makespan->value - one.makespan->value,
                              whole, /*strictly=*/&other < &one);
           });
  });
  return best == all.end() ? nullptr : best;
}

Finding TemplateProver::checkMessages() {
  CapturedDiagnostics quiet;
  auto policy = compiler.policyFor(first, quiet.diags);
  if (!policy)
    return {Finding::Kind::Fails, quiet.message()};
  std::vector<CommOrder> orders{policy->order};
  if (policy->order == CommOrder::Best && !policy->fusion->places) {
    orders = {CommOrder::ReadyTime}; // Wins ties.
    for (const CommOrderInfo &info : commOrders())
      if (info.plan && info.order != orders.front())
        orders.push_back(info.order);
  }
  std::vector<MessagePlan> all;
  for (CommOrder order : orders) {
    policy->order = order;
    all.push_back(planMessages(*policy));
  }
  const MessagePlan *chosen = all.size() == 1 ? &all.front() : bestOf(all);
  if (!chosen)
    return {Finding::Kind::Unknown,
            "the fastest order of messages may depend on M"};
  if (!chosen->finding)
    return chosen->finding;
  makespan = chosen->makespan ? std::optional(formulaOf(*chosen->makespan))
                              : std::nullopt;
  bottleneck = chosen->bottleneck;
  hasFixedSites = chosen->hasFixedSites;
  if (!chosen->isPlacementProven) {
    makespan = std::nullopt;
    return {Finding::Kind::Unknown,
            "the order of messages may differ for larger M"};
  }
  if (artifacts) {
    artifacts.setWithMessages(chosen->withMessages);
    artifacts.programs->preconnect = chosen->preconnect;
    llvm::append_range(artifacts.evidence->orderWitnesses,
                       chosen->orderWitnesses);
    artifacts.evidence->times = chosen->times;
  }
  return {};
}

std::optional<Formula> TemplateProver::dataMakespan() {
  if (!hasUniformTimes(first))
    return std::nullopt;
  std::optional<proof::Times> times;
  auto found = makespanBy(program, dataChecker, nullptr, Sample(first),
                          Sample(second), times);
  if (artifacts)
    artifacts.evidence->times = std::move(times);
  return found ? std::optional(formulaOf(*found)) : std::nullopt;
}

/// The makespan as a formula of n, fitted to the runs of n = 1 and n = 2 and
/// checked; `times` are those of its events.
std::optional<proof::Makespan>
TemplateProver::makespanBy(const proof::Template &rows, const Checker &checker,
                           const Transport *transport, const Sample &a,
                           const Sample &b,
                           std::optional<proof::Times> &times) const {
  times = fit(rows, {a.run(transport), b.run(transport)});
  auto result = times ? checker.makespan(*times, costs) : std::nullopt;
  if (!result)
    times = std::nullopt;
  return result;
}

Formula TemplateProver::formulaOf(const proof::Makespan &makespan) const {
  Formula result = formula(family, makespan.value, cost::unit);
  result.isExact = makespan.isExact;
  return result;
}
