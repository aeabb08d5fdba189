// What is known of all actions of a program, loops counted as often as they
// turn.
#pragma once

#include "ppcc/Analysis/Index/EdgeIndex.h"

namespace ppcc {

/// Facts that positions in a list of loops do not tell.
struct PeakUsage {
  struct EdgeBuffers {
    PipeId pipe;
    StageId from, to;
    uint8_t slotBit = 0;
    uint32_t peak = 0; ///< Not 0.
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

} // namespace ppcc
