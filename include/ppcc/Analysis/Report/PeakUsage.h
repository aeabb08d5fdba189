// What is known of all actions of a program, loops counted as often as they
// turn: activations, and receives under way.
#pragma once

#include "ppcc/Analysis/Index/EdgeIndex.h"

namespace ppcc {

/// Facts that positions in a list of loops do not tell.
struct PeakUsage {
  struct EdgeBuffers {
    PipeId pipe;
    StageId from, to;
    uint8_t slotBit;
    uint32_t peak; ///< Not 0.
    bool operator==(const EdgeBuffers &) const = default;
  };

  /// By rank: receives that are posted and not yet read, at most, and
  /// activations.
  std::vector<uint32_t> buffers, activations;
  std::vector<EdgeBuffers> byEdge; ///< On which something is received.

  /// O(actions + messages).
  explicit PeakUsage(const Program &flat);
};

/// Those of a program, kept with it. Where it has loops and nobody knows them
/// they are written out: O(unrolledSize()).
const PeakUsage &peakUsage(const Program &program);
/// Keeps what is known of a program with it.
void keep(PeakUsage facts, const Program &program);

/// Whether the action begins an activation, which it does at its start.
inline bool beginsActivation(const KindInfo &info) {
  return info.isCompute() && (info.defines & slot::Output);
}

/// Whether the action ends one, which it does at its end: by the gradients of
/// the weights. In a forward-only program nothing does: forwards count until
/// the end, as in Megatron-LM's own count.
inline bool endsActivation(const KindInfo &info) {
  return info.isCompute() && (info.defines & slot::WeightGrad);
}

/// The most activations that a rank has at one time. The members of a group
/// begin theirs together, and end them together. `program` must be flat.
/// O(actions of the rank).
uint32_t peakActivations(const Program &program, RankId rank);

} // namespace ppcc
