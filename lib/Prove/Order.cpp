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
      return orderOf(of.program, of.index, of.messages, transport,
                     Durations(timed));
    };
    auto a = run(first), b = run(second);
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

std::optional<proof::Times> ppcc::timesBy(const proof::Template &program,
                                          const Transport *transport,
                                          const Sample &first,
                                          const Sample &second) {
  auto run = [&](const Sample &of) -> std::optional<RowTimes> {
    Durations durations(of.program);
    auto done = transport ? simulate(of.program, of.index, *of.messages,
                                     durations, *transport)
                          : simulate(of.program, of.index, durations);
    if (!done)
      return std::nullopt;
    return RowTimes{std::move(done->starts), std::move(done->ends)};
  };
  auto a = run(first), b = run(second);
  return a && b ? fit(program, *a, *b) : std::nullopt;
}

bool ppcc::hasPlainTimes(const Program &program) {
  return !program.costs().has({Cost::Scale, Cost::ScaleTime, Cost::ScaleAction,
                               Cost::ScaleBytes}) &&
         !Durations(program).hasSlack();
}
