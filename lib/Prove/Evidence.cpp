#include "Evidence.h"

#include "Fit.h"

using namespace ppcc;

ProofArtifacts ProofArtifacts::of(int64_t base, int64_t step,
                                  const Program &sample,
                                  const proof::Template &family,
                                  std::shared_ptr<const proof::Model> model) {
  ProofArtifacts artifacts{std::make_shared<proof::ResidueFamily>(),
                           std::make_shared<proof::Evidence>()};
  artifacts.programs->base = artifacts.evidence->base = base;
  artifacts.programs->step = artifacts.evidence->step = step;
  Rows none;
  for ([[maybe_unused]] RankId rank : sample.ranks())
    none.beginRank();
  artifacts.programs->head = sample.withRows(std::move(none));
  artifacts.evidence->withoutMessages = family;
  artifacts.evidence->withoutMessages.head = model.get();
  artifacts.evidence->model = std::move(model);
  return artifacts;
}

void ProofArtifacts::setWithMessages(const proof::Template &whole) {
  programs->withMessages = evidence->withMessages = whole;
  programs->withMessages.head = &programs->head.head();
  evidence->withMessages.head = evidence->model.get();
}

ProofArtifacts ppcc::artifactsOf(int64_t m, const Program &program,
                                 ArrayRef<Transport> transports, bool dataOnly,
                                 InstanceCompiler &compiler) {
  CapturedDiagnostics quiet;
  auto bare = compiler.compile(m, false, quiet);
  if (!bare)
    return {};
  proof::Template own = templateOf(*bare, bare->head());
  ProofArtifacts artifacts =
      ProofArtifacts::of(m, 1, program, own, modelOf(*bare, own));
  artifacts.programs->preconnect = program.preconnect();
  dataOnly |= transports.empty();
  auto show = [&](const Program &one, const Transport *transport,
                  const proof::Template &place, bool isTimed) {
    Sample sample(one, transport);
    Durations durations(one);
    if (auto witness = fit(place, sample.numberEvents(transport, durations)))
      artifacts.evidence->orderWitnesses.push_back(
          {transport ? transport->name : "data", std::move(*witness)});
    if (isTimed)
      artifacts.evidence->times = fit(place, sample.run(transport));
  };
  show(*bare, nullptr, own, dataOnly);
  if (!transports.empty())
    artifacts.setWithMessages(templateOf(program, program.head()));
  for (const Transport &transport : transports)
    show(program, &transport, artifacts.evidence->withMessages,
         !dataOnly && &transport == &transports.front());
  return artifacts;
}
