#include "Judge.h"

#include "Figures.h"
#include "Places.h"

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
    finding = order ? checker.forward(*order)
                    : Finding{Finding::Kind::Unknown,
                              "what ranks do does not settle"};
    if (finding)
      break;
  }
  return order;
}

/// Whether costs are the same for all microbatches.
static bool hasPlainTimes(const Program &program) {
  return !program.costs().has({Cost::Scale, Cost::ScaleTime, Cost::ScaleAction,
                               Cost::ScaleBytes}) &&
         !Durations(program).hasSlack();
}

/// Events of a template that wait for each other from some n on, which is at
/// most `most`.
static std::optional<Judge::Circle>
circleIn(const proof::Template &program, const Checker &checker,
         const Transport *transport, const Sample &first, const Sample &second,
         int64_t most) {
  for (int64_t n : {1, 2})
    for (bool fromEnd : {false, true}) {
      auto events =
          circleOf(program, n, n == 1 ? first : second, transport, fromEnd);
      for (int64_t from = 0; from <= most; ++from)
        if (!events.empty() && checker.isCircle(events, from))
          return Judge::Circle{std::move(events), from};
    }
  return std::nullopt;
}

Finding Judge::orderByData() {
  Sample a(first), b(second);
  Finding finding;
  auto order = orderBy(program, byData, nullptr, a, b, finding);
  if (finding && notes)
    notes.evidence->shown.push_back({"data", std::move(*order)});
  if (order || finding.kind != Finding::Kind::Fails)
    return finding;
  circle = circleIn(program, byData, nullptr, a, b, /*most=*/2);
  if (circle)
    return {Finding::Kind::Fails, ""};
  return {Finding::Kind::Unknown, "ranks wait in a circle that changes"};
}

Judge::Carried Judge::carryBy(const CommPolicy &policy) {
  Carried result;
  Quiet quiet;
  Program withFirst = first, withSecond = second;
  PlanTimes ofFirst, ofSecond;
  for (auto [one, times] :
       {std::pair(&withFirst, &ofFirst), std::pair(&withSecond, &ofSecond)})
    if (!singles.addMessages(*one, policy, quiet, times)) {
      result.finding = {Finding::Kind::Fails, quiet.message()};
      return result;
    }
  auto unknown = [&](const std::string &why) {
    result.finding = {Finding::Kind::Unknown, why};
    return result;
  };
  auto whole = withMessages(program, withFirst, withSecond, result.isPlaced);
  if (!whole || !proof::haveSameActions(program, *whole))
    return unknown("the order of messages does not settle");
  result.whole = std::move(*whole);
  result.preconnect = withSecond.preconnect();
  Sample a(withFirst, true), b(withSecond, true);
  auto stays = [&] {
    bool isPlain = policy.fusion->fusion == Fusion::None && !policy.torch &&
                   !policy.prefetch && policy.order != CommOrder::None;
    return isPlain &&
           (policy.order == CommOrder::Late || hasPlainTimes(first)) &&
           stayPlaced(
               {result.whole, program, costs, policy.order, ofFirst, ofSecond});
  };
  for (const Transport &transport : policy.transports) {
    auto checker = Checker::of(result.whole, &transport);
    if (Finding finding = checker->complete(); !finding)
      return unknown(finding.why);
    if (Finding finding = checker->matched(); !finding)
      return unknown(finding.why);
    Finding finding;
    auto order = orderBy(result.whole, *checker, &transport, a, b, finding);
    if (!finding) {
      // Of several orders, one that blocks for all n is not taken.
      result.blocks =
          finding.kind == Finding::Kind::Fails && stays() &&
          circleIn(result.whole, *checker, &transport, a, b, /*most=*/0);
      return unknown(finding.why);
    }
    result.shown.push_back({transport.name, *order});
    if (&transport != &policy.transports.front() || !hasPlainTimes(withFirst))
      continue;
    result.makespan =
        makespanBy(result.whole, *checker, &transport, a, b, result.times);
    if (request.explains)
      if (auto run = b.run(&transport))
        result.limit = limitOf(result.whole, withSecond, *run);
  }
  result.stays = stays();
  return result;
}

/// The one that the compiler takes as the best, for all n: the first of those
/// that end first.
const Judge::Carried *Judge::bestOf(ArrayRef<Carried> all) const {
  proof::Domain whole{0, family.last, false, {}, {}};
  auto isKnown = [](const Carried &one) {
    return one.blocks ||
           (one.finding && one.stays && one.makespan && one.makespan->isExact);
  };
  if (!llvm::all_of(all, isKnown))
    return nullptr;
  auto *best = llvm::find_if(all, [&](const Carried &one) {
    return !one.blocks && llvm::all_of(all, [&](const Carried &other) {
      return other.blocks ||
             atLeast(other.makespan->value - one.makespan->value, whole,
                     &other < &one);
    });
  });
  return best == all.end() ? nullptr : best;
}

Finding Judge::carry() {
  Quiet quiet;
  auto policy = singles.policyFor(first, quiet.diags);
  if (!policy)
    return {Finding::Kind::Fails, quiet.message()};
  std::vector<CommOrder> orders{policy->order};
  if (policy->order == CommOrder::Best && !policy->fusion->places) {
    orders = {CommOrder::ReadyTime}; // It goes first, if several do as well.
    for (const CommOrderInfo &info : commOrders())
      if (info.plan && info.order != orders.front())
        orders.push_back(info.order);
  }
  std::vector<Carried> all;
  for (CommOrder order : orders) {
    policy->order = order;
    all.push_back(carryBy(*policy));
  }
  const Carried *chosen = all.size() == 1 ? &all.front() : bestOf(all);
  if (!chosen)
    return {Finding::Kind::Unknown, "the best order of messages may change"};
  if (!chosen->finding)
    return chosen->finding;
  makespan = chosen->makespan ? std::optional(formulaOf(*chosen->makespan))
                              : std::nullopt;
  limit = chosen->limit;
  isPlaced = chosen->isPlaced;
  if (!chosen->stays) {
    makespan = std::nullopt;
    return {Finding::Kind::Unknown, "the order of messages may change later"};
  }
  if (notes) {
    notes.carry(chosen->whole);
    notes.programs->preconnect = chosen->preconnect;
    llvm::append_range(notes.evidence->shown, chosen->shown);
    notes.evidence->times = chosen->times;
  }
  return {};
}

std::optional<Formula> Judge::makespanByData() {
  if (!hasPlainTimes(first))
    return std::nullopt;
  std::optional<proof::Times> times;
  auto found = makespanBy(program, byData, nullptr, Sample(first),
                          Sample(second), times);
  if (notes)
    notes.evidence->times = std::move(times);
  return found ? std::optional(formulaOf(*found)) : std::nullopt;
}

/// The makespan of runs like those of the first and the second n.
std::optional<proof::Makespan>
Judge::makespanBy(const proof::Template &rows, const Checker &checker,
                  const Transport *transport, const Sample &a, const Sample &b,
                  std::optional<proof::Times> &times) const {
  times = fit(rows, {a.run(transport), b.run(transport)});
  auto shown = times ? checker.makespan(*times, costs) : std::nullopt;
  if (!shown)
    times = std::nullopt;
  return shown;
}

Formula Judge::formulaOf(const proof::Makespan &makespan) const {
  Formula result = formula(family, makespan.value, cost::unit);
  result.isExact = makespan.isExact;
  return result;
}
