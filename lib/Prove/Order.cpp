#include "Order.h"

using namespace ppcc;
using proof::Finding;

std::optional<proof::Times>
ppcc::orderBy(const proof::Template &program, const proof::Checker &checker,
              const Transport *transport, const Sample &first,
              const Sample &second, Finding &finding) {
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

bool ppcc::hasPlainTimes(const Program &program) {
  return !program.costs().has({Cost::Scale, Cost::ScaleTime, Cost::ScaleAction,
                               Cost::ScaleBytes}) &&
         !Durations(program).hasSlack();
}
