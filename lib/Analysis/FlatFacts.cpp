// Gathers what is known of all actions of a program.
#include "ppcc/Analysis/FlatFacts.h"

#include "ppcc/Analysis/Activations.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/IR/Loops.h"

using namespace ppcc;

FlatFacts::FlatFacts(const Program &flat) {
  const ReceiveBuffers &received = Analyses(flat).buffers();
  for (RankId rank : flat.ranks()) {
    buffers.push_back(received.mostOf(rank));
    activations.push_back(peakActivations(flat, rank));
  }
  for (const auto &[i, edge] : llvm::enumerate(received.edges().edges()))
    if (uint32_t most = received.mostOf(i))
      ofEdges.push_back({edge.pipe, edge.from, edge.to, edge.slotBit, most});
}

const FlatFacts &ppcc::flatFacts(const Program &program) {
  return program.derived.get("", [&] {
    return program.loops().empty() ? FlatFacts(program)
                                   : FlatFacts(unrolled(program));
  });
}

void ppcc::keep(FlatFacts facts, const Program &program) {
  program.derived.get("", [&] { return std::move(facts); });
}
