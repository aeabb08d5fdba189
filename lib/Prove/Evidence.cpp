#include "Evidence.h"

#include "Fit.h"
#include "Memory.h"

#include "ppcc/Analysis/Simulation.h"

using namespace ppcc;

std::shared_ptr<proof::Evidence> ppcc::beginEvidence(int64_t base, int64_t step,
                                                     const Program &sample) {
  auto evidence = std::make_shared<proof::Evidence>();
  evidence->base = base;
  evidence->step = step;
  Rows none;
  for ([[maybe_unused]] RankId rank : sample.ranks())
    none.beginRank();
  evidence->head = sample.withRows(std::move(none));
  return evidence;
}

std::shared_ptr<proof::Evidence>
ppcc::evidenceOf(int64_t m, const Program &program,
                 ArrayRef<Transport> transports, bool byData, bool hasMakespan,
                 Singles &singles) {
  auto evidence = beginEvidence(m, 1, program);
  evidence->preconnect = program.preconnect();
  auto show = [&](const Program &one, const Transport *transport,
                  proof::Template &place, bool isTimed) {
    place = templateOf(one, evidence->head.head());
    Sample sample(one, transport);
    Durations durations(one);
    auto order = fit(place, sample.order(transport, durations));
    if (!order)
      return;
    evidence->shown.push_back(
        {transport ? transport->name : "data", std::move(*order)});
    if (isTimed && (evidence->times = fit(place, sample.run(transport))))
      evidence->durations = durationsOf(place, one, durations);
  };
  byData |= transports.empty();
  Quiet quiet;
  if (auto bare = singles.compile(m, false, quiet)) {
    show(*bare, nullptr, evidence->byData, byData && hasMakespan);
    if (bare->costs().has({Cost::MemoryLimit}))
      if (auto holdings = holdingsOf(evidence->byData, *bare)) {
        evidence->holdings = std::move(*holdings);
        evidence->rooms = roomsOf(*bare);
      }
  }
  for (const Transport &transport : transports)
    show(program, &transport, evidence->carried,
         !byData && hasMakespan && &transport == &transports.front());
  return evidence;
}
