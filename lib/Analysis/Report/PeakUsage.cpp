// Gathers what is known of all actions of a program.
#include "ppcc/Analysis/Report/PeakUsage.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/IR/Loops.h"

using namespace ppcc;

PeakUsage::PeakUsage(const Program &flat) {
  const ReceiveBuffers &received = Analyses(flat).buffers();
  for (RankId rank : flat.ranks()) {
    buffers.push_back(received.peakBuffers(rank));
    activations.push_back(peakActivations(flat, rank));
  }
  for (const auto &[i, edge] : llvm::enumerate(received.edges().edges()))
    if (uint32_t peak = received.peakBuffers(i))
      byEdge.push_back({edge.pipe, edge.from, edge.to, edge.slotBit, peak});
}

const PeakUsage &ppcc::peakUsage(const Program &program) {
  return program.derived.get("", [&] {
    return program.loops().empty() ? PeakUsage(program)
                                   : PeakUsage(unrolled(program));
  });
}

void ppcc::keep(PeakUsage facts, const Program &program) {
  program.derived.get("", [&] { return std::move(facts); });
}

uint32_t ppcc::peakActivations(const Program &program, RankId rank) {
  int64_t held = 0, peak = 0;
  for (RowRange item : program.items(rank)) {
    for (ActionId row : item)
      held += beginsActivation(program.kindOf(row));
    peak = std::max(peak, held);
    for (ActionId row : item)
      held -= endsActivation(program.kindOf(row));
  }
  return uint32_t(peak);
}
