// Who hosts which stage, what stages read of each other, and what can be done:
// what a program of rows is judged by.
#pragma once

#include "ppcc/IR/ActionKind.h"
#include "ppcc/IR/Tensors.h"

namespace ppcc {

/// Stages that some of the microbatches pass through. Each has an edge to the
/// next, as far as `gaps` does not take it away; all edges lead up.
struct Pipe {
  std::string name;
  uint32_t firstMicrobatch = 0;
  uint32_t numMicrobatches = 0;
  std::vector<RankId> rankOfStage; ///< One entry a stage.
  /// Edges beside those from each stage to the next: (from, to) with from < to,
  /// sorted, no duplicates, never a neighbour pair.
  std::vector<std::pair<StageId, StageId>> skipEdges;
  /// Stages without an edge to the next, sorted, no duplicates.
  std::vector<StageId> gaps;
  /// So many microbatches in a row are slices of one sequence, the first of
  /// them its beginning; a divisor of `numMicrobatches`.
  uint32_t slices = 1;
  /// What edges carry, by their stages, as far as that is known.
  std::vector<EdgeTensors> tensors;

  uint32_t numStages() const {
    return static_cast<uint32_t>(rankOfStage.size());
  }
  IdRange<StageId> stages() const { return firstIds<StageId>(numStages()); }
  uint32_t endMicrobatch() const { return firstMicrobatch + numMicrobatches; }
  bool hasMicrobatch(uint32_t microbatch) const {
    return microbatch >= firstMicrobatch && microbatch < endMicrobatch();
  }
  /// Whether a stage that is not the last has an edge to the next.
  /// O(log gaps).
  bool hasEdgeToNext(StageId stage) const {
    return !std::binary_search(gaps.begin(), gaps.end(), stage);
  }
  /// O(log edges).
  bool hasEdge(StageId from, StageId to) const {
    return from.value + 1 == to.value
               ? to.value < numStages() && hasEdgeToNext(from)
               : std::binary_search(skipEdges.begin(), skipEdges.end(),
                                    std::pair(from, to));
  }
  /// The slice of the same sequence whose `slotBit` must be there before that
  /// of `microbatch`, on every stage: causal attention reads the keys of
  /// earlier slices, and hands the gradients of keys back to them.
  std::optional<uint32_t> sliceBefore(uint32_t microbatch,
                                      uint8_t slotBit) const {
    if (slices == 1)
      return std::nullopt;
    uint32_t slice = (microbatch - firstMicrobatch) % slices;
    if (slotBit == slot::Output && slice != 0)
      return microbatch - 1;
    if (slotBit == slot::InputGrad && slice + 1 != slices)
      return microbatch + 1;
    return std::nullopt;
  }
};

/// The part of a head that decides which programs are right.
struct Topology {
  uint32_t numRanks = 0;
  std::vector<Pipe> pipes;
  bool hasBackward = true; ///< False for a forward-only program.
  KindTable kinds;

  IdRange<PipeId> pipeIds() const { return firstIds<PipeId>(pipes.size()); }
  /// The rank that hosts a stage.
  RankId rankOfStage(PipeId pipe, StageId stage) const {
    return pipes[pipe.value].rankOfStage[stage.value];
  }
};

/// The stages that the work of `stage` reads `slotBit` from: those before it
/// for Output, those after it for InputGrad, none for WeightGrad. Ascending.
SmallVector<StageId, 2> sourcesOf(const Pipe &pipe, StageId stage,
                                  uint8_t slotBit);
/// The stages that read `slotBit` of `stage`. Ascending.
SmallVector<StageId, 2> readersOf(const Pipe &pipe, StageId stage,
                                  uint8_t slotBit);

} // namespace ppcc
