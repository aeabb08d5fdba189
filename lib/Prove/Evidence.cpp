#include "Evidence.h"

#include "Fit.h"
#include "Model.h"

#include "ppcc/Analysis/Simulation.h"

using namespace ppcc;

Notes Notes::of(int64_t base, int64_t step, const Program &sample,
                const proof::Template &family,
                std::shared_ptr<const proof::Model> model) {
  Notes notes{std::make_shared<proof::Programs>(),
              std::make_shared<proof::Evidence>()};
  notes.programs->base = notes.evidence->base = base;
  notes.programs->step = notes.evidence->step = step;
  Rows none;
  for ([[maybe_unused]] RankId rank : sample.ranks())
    none.beginRank();
  notes.programs->head = sample.withRows(std::move(none));
  notes.evidence->byData = family;
  notes.evidence->byData.head = model.get();
  notes.evidence->model = std::move(model);
  return notes;
}

void Notes::carry(const proof::Template &whole) {
  programs->carried = evidence->carried = whole;
  programs->carried.head = &programs->head.head();
  evidence->carried.head = evidence->model.get();
}

Notes ppcc::notesOf(int64_t m, const Program &program,
                    ArrayRef<Transport> transports, bool byData,
                    Singles &singles) {
  Quiet quiet;
  auto bare = singles.compile(m, false, quiet);
  if (!bare)
    return {};
  proof::Template own = templateOf(*bare, bare->head());
  Notes notes = Notes::of(m, 1, program, own, modelOf(*bare, own));
  notes.programs->preconnect = program.preconnect();
  byData |= transports.empty();
  auto show = [&](const Program &one, const Transport *transport,
                  const proof::Template &place, bool isTimed) {
    Sample sample(one, transport);
    Durations durations(one);
    if (auto order = fit(place, sample.order(transport, durations)))
      notes.evidence->shown.push_back(
          {transport ? transport->name : "data", std::move(*order)});
    if (isTimed)
      notes.evidence->times = fit(place, sample.run(transport));
  };
  show(*bare, nullptr, own, byData);
  if (!transports.empty())
    notes.carry(templateOf(program, program.head()));
  for (const Transport &transport : transports)
    show(program, &transport, notes.evidence->carried,
         !byData && &transport == &transports.front());
  return notes;
}
