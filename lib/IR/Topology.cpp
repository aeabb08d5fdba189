#include "ppcc/IR/Topology.h"

using namespace ppcc;

/// The stages below (`step` -1) or above (+1) `stage` that share an edge with
/// it, ascending.
static SmallVector<StageId, 2> neighbours(const Pipe &pipe, StageId stage,
                                          int step) {
  SmallVector<StageId, 2> result;
  bool isInside =
      step < 0 ? stage.value > 0 : stage.value + 1 < pipe.numStages();
  if (isInside && pipe.hasEdgeToNext(StageId(stage.value - (step < 0))))
    result.push_back(StageId(stage.value + step));
  for (auto [from, to] : pipe.skipEdges)
    if ((step < 0 ? to : from) == stage)
      result.push_back(step < 0 ? from : to);
  llvm::sort(result);
  return result;
}

SmallVector<StageId, 2> ppcc::sourcesOf(const Pipe &pipe, StageId stage,
                                        uint8_t slotBit) {
  if (slotBit == slot::WeightGrad)
    return {};
  return neighbours(pipe, stage, slotBit == slot::Output ? -1 : 1);
}

SmallVector<StageId, 2> ppcc::readersOf(const Pipe &pipe, StageId stage,
                                        uint8_t slotBit) {
  if (slotBit == slot::WeightGrad)
    return {};
  return neighbours(pipe, stage, slotBit == slot::Output ? 1 : -1);
}
