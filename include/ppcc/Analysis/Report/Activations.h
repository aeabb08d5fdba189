// Counts activations: what a stage keeps of a microbatch from its forward to
// the end of its backward.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

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
