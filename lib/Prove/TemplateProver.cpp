#include "TemplateProver.h"

#include "Metrics.h"
#include "PlacementProof.h"

#include "ppcc/Proof/Domain.h"

using namespace ppcc;
using proof::Checker;
using proof::Finding;

/// Numbers with which the checker shows that no rank waits for itself. In
/// `finding` what is wrong with them: Fails where the programs of n = 1 and 2
/// do not reach their end.
static std::optional<proof::Times>
orderBy(const proof::Template &program, const proof::Checker &checker,
        const Transport *transport, const Sample &first, const Sample &second,
        Finding &finding) {
  std::optional<proof::Times> order;
  // Each action takes its own time, or all take the same.
  for (bool isEven : {false, true}) {
    auto run = [&](const Sample &of) {
      Program timed = of.program;
      CostModel &costs = timed.editHead().costs;
      if (!transport || isEven)
        costs = {};
      if (isEven)
        for (KindId kind : timed.kinds().ids())
          if (timed.kinds()[kind].isCompute())
            costs.add(Cost::Action, kind, cost::unit);
      return of.order(transport, Durations(timed));
    };
    auto a = run(first), b = run(second);
    if (!a || !b) {
      finding = {Finding::Kind::Fails, "what ranks do does not settle"};
      return std::nullopt;
    }
    order = fit(program, {a, b});
    finding = order ? checker.checkAcyclic(*order)
                    : Finding{Finding::Kind::Unknown,
                              "what ranks do does not settle"};
    if (finding)
      break;
  }
  return order;
}

/// Whether costs are the same for all microbatches.
static bool hasUniformTimes(const Program &program) {
  return !program.costs().has({Cost::Scale, Cost::ScaleTime, Cost::ScaleAction,
                               Cost::ScaleBytes}) &&
         !Durations(program).hasHookOffsets();
}

/// Events of a template that wait for each other from some n on, which is at
/// most `most`.
static std::optional<TemplateProver::Cycle>
findCycle(const proof::Template &program, const Checker &checker,
          const Transport *transport, const Sample &first, const Sample &second,
          int64_t maxFrom) {
  for (int64_t n : {1, 2})
    for (bool fromEnd : {false, true}) {
      auto events =
          cycleOf(program, n, n == 1 ? first : second, transport, fromEnd);
      for (int64_t from = 0; from <= maxFrom; ++from)
        if (!events.empty() && checker.isCycle(events, from))
          return TemplateProver::Cycle{std::move(events), from};
    }
  return std::nullopt;
}

Finding TemplateProver::checkDataOrder() {
  Sample a(first), b(second);
  Finding finding;
  auto order = orderBy(program, dataChecker, nullptr, a, b, finding);
  if (finding && artifacts)
    artifacts.evidence->orderWitnesses.push_back({"data", std::move(*order)});
  if (order || finding.kind != Finding::Kind::Fails)
    return finding;
  cycle = findCycle(program, dataChecker, nullptr, a, b, /*maxFrom=*/2);
  if (cycle)
    return {Finding::Kind::Fails, ""};
  return {Finding::Kind::Unknown, "ranks wait in a cycle that changes"};
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
    return unknown("the order of messages does not settle");
  result.withMessages = std::move(*whole);
  result.preconnect = withSecond.preconnect();
  Sample a(withFirst, true), b(withSecond, true);
  auto isStable = [&] {
    bool isPlain = policy.fusion->fusion == Fusion::None && !policy.torch &&
                   !policy.prefetch && policy.order != CommOrder::None;
    return isPlain &&
           (policy.order == CommOrder::Late || hasUniformTimes(first)) &&
           isPlacementStable({result.withMessages, program, costs, policy.order,
                              ofFirst, ofSecond});
  };
  for (const Transport &transport : policy.transports) {
    auto checker = Checker::of(result.withMessages, &transport);
    if (Finding finding = checker->checkComplete(); !finding)
      return unknown(finding.why);
    if (Finding finding = checker->checkMatching(); !finding)
      return unknown(finding.why);
    Finding finding;
    auto order =
        orderBy(result.withMessages, *checker, &transport, a, b, finding);
    if (!finding) {
      // Of several orders, one that blocks for all n is not taken.
      result.alwaysDeadlocks = finding.kind == Finding::Kind::Fails &&
                               isStable() &&
                               findCycle(result.withMessages, *checker,
                                         &transport, a, b, /*maxFrom=*/0);
      return unknown(finding.why);
    }
    result.orderWitnesses.push_back({transport.name, *order});
    if (&transport != &policy.transports.front() || !hasUniformTimes(withFirst))
      continue;
    result.makespan = makespanBy(result.withMessages, *checker, &transport, a,
                                 b, result.times);
    if (request.explains)
      if (auto run = b.run(&transport))
        result.bottleneck = bottleneckOf(result.withMessages, withSecond, *run);
  }
  result.isStable = isStable();
  return result;
}

/// The one that the compiler takes as the best, for all n: the first of those
/// that end first.
const TemplateProver::MessagePlan *
TemplateProver::bestOf(ArrayRef<MessagePlan> all) const {
  proof::Domain whole{0, family.last, false, {}, {}};
  auto isKnown = [](const MessagePlan &one) {
    return one.alwaysDeadlocks || (one.finding && one.isStable &&
                                   one.makespan && one.makespan->isExact);
  };
  if (!llvm::all_of(all, isKnown))
    return nullptr;
  auto *best = llvm::find_if(all, [&](const MessagePlan &one) {
    return !one.alwaysDeadlocks &&
           llvm::all_of(all, [&](const MessagePlan &other) {
             return other.alwaysDeadlocks ||
                    isAtLeast(other.makespan->value - one.makespan->value,
                              whole, &other < &one);
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
    orders = {CommOrder::ReadyTime}; // It goes first, if several do as well.
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
    return {Finding::Kind::Unknown, "the best order of messages may change"};
  if (!chosen->finding)
    return chosen->finding;
  makespan = chosen->makespan ? std::optional(formulaOf(*chosen->makespan))
                              : std::nullopt;
  bottleneck = chosen->bottleneck;
  hasFixedSites = chosen->hasFixedSites;
  if (!chosen->isStable) {
    makespan = std::nullopt;
    return {Finding::Kind::Unknown, "the order of messages may change later"};
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

/// The makespan of runs like those of the first and the second n.
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
