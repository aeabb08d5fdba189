// Where the weights of a network are, and what sums them.
#pragma once

#include "ppcc/Torch/Stage.h"

#include <compare>

namespace ppcc::rt {

/// A stage that has a weight. Ranks are counted over all replicas of the
/// pipeline.
struct StageReplica {
  uint32_t rank;
  uint8_t pipe;
  uint16_t stage;

  auto operator<=>(const StageReplica &) const = default;
};

/// The places of the weights that are in several, by name; ascending. A stage
/// that has one twice is one place.
using SharedReplicas = std::map<std::string, std::vector<StageReplica>>;

/// The weights of a rank, for the others: names, types, shapes and values, as
/// text.
std::string describeWeights(const TorchStage &stage);

/// Of what all ranks have described. Throws Error where the places of a weight
/// differ.
SharedReplicas findSharedReplicas(const std::vector<std::string> &described);

/// How often the rank of the stage acts on the gradients of each of its stages.
std::map<std::pair<uint8_t, uint16_t>, uint64_t>
countReductions(const TorchStage &stage);

/// Throws Error when the program of the stage moves weights whose places are
/// not all connected by its sums. O(actions of all ranks), where it does.
void checkReductions(const TorchStage &stage, const SharedReplicas &places);

/// For steps that ask all ranks for the norm: throws Error when a rank does
/// after its step what another must do with it ahead, and so would wait for
/// ever. O(actions of all ranks).
void checkStepIsBarrier(const TorchStage &stage);

} // namespace ppcc::rt
