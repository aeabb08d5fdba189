#include "Judge.h"

#include "Figures.h"

using namespace ppcc;
using proof::Checker;
using proof::Finding;

/// Rows of a later instance that is looked at.
static constexpr int64_t mostLater = 60'000;

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

Finding Judge::orderByData() {
  Sample a(first), b(second);
  Finding finding;
  auto order = orderBy(program, byData, nullptr, a, b, finding);
  if (finding && evidence)
    evidence->shown.push_back({"data", std::move(*order)});
  if (order || finding.kind != Finding::Kind::Fails)
    return finding;
  for (int64_t n : {1, 2})
    for (bool fromEnd : {false, true}) {
      auto events = circleOf(program, n, n == 1 ? a : b, fromEnd);
      for (int64_t from : {0, 1, 2})
        if (!events.empty() && byData.isCircle(events, from)) {
          circle = {std::move(events), from};
          return {Finding::Kind::Fails, ""};
        }
    }
  return {Finding::Kind::Unknown, "ranks wait in a circle that changes"};
}

Finding Judge::carry(bool looksLater) {
  Quiet quiet;
  std::vector<Transport> transports;
  Program withFirst = first, withSecond = second;
  for (Program *one : {&withFirst, &withSecond}) {
    auto policy = singles.policyFor(*one, quiet.diags);
    if (!policy || !singles.addMessages(*one, *policy, quiet))
      return {Finding::Kind::Fails, quiet.message()};
    transports = policy->transports;
  }
  auto whole = withMessages(program, withFirst, withSecond, isPlaced);
  if (!whole || !proof::haveSameActions(program, *whole))
    return {Finding::Kind::Unknown, "the order of messages does not settle"};
  if (evidence) {
    evidence->carried = *whole;
    evidence->carried.head = &evidence->head.head();
    evidence->preconnect = withSecond.preconnect();
  }
  Sample a(withFirst, true), b(withSecond, true);
  for (const Transport &transport : transports) {
    auto checker = Checker::of(*whole, &transport);
    if (Finding finding = checker->complete(); !finding)
      return {Finding::Kind::Unknown, finding.why};
    if (Finding finding = checker->matched(); !finding)
      return finding;
    Finding finding;
    auto order = orderBy(*whole, *checker, &transport, a, b, finding);
    if (!finding)
      return {Finding::Kind::Unknown, finding.why};
    if (evidence)
      evidence->shown.push_back({transport.name, *order});
    if (&transport != &transports.front() || !hasPlainTimes(withFirst))
      continue;
    makespan = makespanBy(*whole, *checker, &transport, a, b);
    if (!request.explains)
      continue;
    if (auto run = b.run(&transport))
      figures = figuresOf(family, *whole,
                          durationsOf(*whole, withFirst, Durations(withFirst)),
                          withSecond, &*run);
  }
  if (looksLater && !goesOn(*whole))
    return {Finding::Kind::Unknown, "the order of messages changes later"};
  return {};
}

/// Whether the first instance has the messages of the template, and a later one
/// that is small: a rhythm may begin after those that it is made of.
bool Judge::goesOn(const proof::Template &whole) {
  auto number = [&](int64_t n) { return family.base + family.step * n; };
  int64_t stages = 0;
  for (const Pipe &pipe : first.pipes())
    stages += pipe.numStages();
  int64_t n = 40;
  while (n > 2 &&
         (n > family.last || __int128(number(n)) * stages * 6 > mostLater))
    --n;
  auto isLike = [&](int64_t n) {
    Quiet quiet;
    auto one = singles.compile(number(n), false, quiet);
    auto policy = one ? singles.policyFor(*one, quiet.diags) : std::nullopt;
    return policy && singles.addMessages(*one, *policy, quiet) &&
           isInstance(whole, n, *one);
  };
  return n <= 2 || (isLike(0) && isLike(n));
}

std::optional<Formula> Judge::makespanByData() {
  if (!hasPlainTimes(first) || first.costs().hasMessageTimes())
    return std::nullopt;
  return makespanBy(program, byData, nullptr, Sample(first), Sample(second));
}

/// The makespan of runs like those of the first and the second n.
std::optional<Formula> Judge::makespanBy(const proof::Template &rows,
                                         const Checker &checker,
                                         const Transport *transport,
                                         const Sample &a, const Sample &b) {
  if (evidence)
    evidence->times = std::nullopt;
  auto times = fit(rows, {a.run(transport), b.run(transport)});
  if (!times)
    return std::nullopt;
  auto ofRows = durationsOf(rows, a.program, Durations(a.program));
  auto shown = checker.makespan(*times, ofRows);
  if (!shown)
    return std::nullopt;
  if (evidence) {
    evidence->times = std::move(times);
    evidence->durations = std::move(ofRows);
  }
  Formula result = formula(family, shown->value, cost::unit);
  result.isExact = shown->isExact;
  return result;
}
