// Where ranks hold too much, and what messages hold.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Proof/Costs.h"

namespace ppcc {

/// What a message from a stage to another holds, where somebody says it, and it
/// is the same for all microbatches.
std::optional<Amount> bytesOf(const Program &program, PipeId pipe, StageId from,
                              StageId to);

/// Where ranks hold more than they may.
struct Excess {
  int64_t splitAt = 0; ///< The n from which on it is otherwise; 0 for none.
  /// A rank that holds too much for all n, and how much: the most.
  std::optional<std::pair<uint32_t, proof::Affine>> over;
};
Excess excessOf(const proof::Template &program,
                const proof::MemoryDeltas &memoryDeltas,
                const proof::Costs &costs);

} // namespace ppcc
