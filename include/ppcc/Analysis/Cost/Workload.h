// What a placement asks of its ranks, whatever the order.
#pragma once

#include "ppcc/Analysis/Cost/Durations.h"
#include "ppcc/Analysis/Report/MemoryCurve.h"

namespace ppcc {

/// The stages of a placement with what they take, the edges between them, and
/// the room that ranks have.
struct Workload {
  /// The parts of a stage's work on a microbatch. In a fused backward there is
  /// no W, and I stands for B.
  enum Part : uint8_t { F, I, W };
  static constexpr unsigned numParts = 3;

  /// Which kinds make gradients: B, I and W, or both (then I and W take what
  /// the cheaper way takes), or none.
  enum class Backward : uint8_t { None, Fused, Split, Mixed };

  /// What becomes of what F keeps for the gradients, where that is a choice: it
  /// stays; or F keeps nothing, and the declared action that restores F goes
  /// ahead of I; or it is on the host between F and I.
  enum class ActivationPolicy : uint8_t { Keep, Recompute, Offload };

  /// A stage that another waits for.
  struct Edge {
    uint32_t stage; ///< In `stages`.
    Time latency;   ///< 0 on one rank.
  };

  struct Stage {
    PipeId pipe;
    StageId stage;
    RankId rank;
    uint32_t microbatches = 0;
    std::array<Time, numParts> time{}; ///< From begin to end, at least.
    std::array<Time, numParts> work{}; ///< Of the rank, at least.
    std::array<Time, numParts> sum{};  ///< The work of all microbatches.
    std::array<Amount, numParts> allocates{}, frees{}; ///< At begin; at end.
    Time recomputeTime = 0; ///< Of `time[I]`: computing what F did not keep.
    Time copyOut = 0, copyIn = 0;      ///< Copies to the host, and back.
    SmallVector<Edge, 1> below, above; ///< It reads outputs, gradients.

    Amount heldAfterF() const { return allocates[F] - frees[F]; }
    Amount heldAfterI() const { return heldAfterF() + allocates[I] - frees[I]; }
  };

  std::vector<Stage> stages; ///< Of all pipes, one pipe after another.
  std::vector<std::vector<uint32_t>> ofRank; ///< The stages of each.
  /// By rank: what the limit leaves beside what is held at rest.
  std::vector<std::optional<Amount>> memoryBudget;
  Backward backward = Backward::Split;

  bool hasPart(Part part) const {
    return part == F || (backward != Backward::None &&
                         (part == I || backward != Backward::Fused));
  }

  /// That of a head, for schedules with this kind of backward whose groups have
  /// at most `maxGroupSize` members. Declared actions are left out; where they
  /// change what ranks hold, so is the room. The times must fit. O(stages +
  /// scales). With a `saving`, the actions that it takes are none of those.
  static Workload of(const Program &program, const Durations &durations,
                     Backward backward, uint32_t maxGroupSize = 1,
                     std::optional<ActivationPolicy> saving = std::nullopt);
  /// That of a program, for schedules of its kind. O(actions).
  static Workload of(const Program &program, const Durations &durations);
};

/// The declared action that computes again what a forward did not keep.
std::optional<KindId> recomputeKind(const Program &program);

/// The declared actions that bring to the host what a forward keeps, and back.
struct OffloadKinds {
  KindId out, in;
};
std::optional<OffloadKinds> offloadKinds(const Program &program);

} // namespace ppcc
