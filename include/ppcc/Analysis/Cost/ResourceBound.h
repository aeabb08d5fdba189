// The work of a placement, and what no order of its actions can do better than.
#pragma once

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
    std::array<Time, numParts> time{};    ///< From begin to end, at least.
    std::array<Time, numParts> work{};    ///< Of the rank, at least,
    std::array<Time, numParts> maxWork{}; ///< and of a microbatch at most.
    std::array<Time, numParts> sum{};     ///< The work of all microbatches.
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

/// What is to be short: the time from the first begin to the last end, or the
/// longest time between a rank's own first begin and last end.
enum class Objective : uint8_t { Makespan, Span };

/// A time that no schedule of a workload is shorter than, with the argument:
/// what the time of one rank is made of.
struct ResourceBound {
  Time time = 0;
  RankId rank; ///< That the argument speaks of.

  /// How the rank begins, and how it ends.
  enum class Begin : uint8_t { FirstForward, FirstBackward };
  enum class End : uint8_t { Work, LastBackward, LastForward };
  /// Or one of two arguments about memory alone, that of the copies to the
  /// host, or a search through all orders, of so many `rounds`.
  enum class Kind : uint8_t {
    Work,
    MemoryTime,
    Rounds,
    Copies,
    Search
  } kind = Kind::Work;
  Begin begin = Begin::FirstForward;
  End end = End::Work;
  Time head = 0; ///< Before it begins.
  Time work = 0; ///< From then on, at least, without the tail.
  Time tail = 0; ///< Behind the work.
  uint64_t rounds = 0, inRound = 0; ///< Of Kind::Rounds.
  /// Of Kind::Search: how it has refuted less, in preorder. A node splits a
  /// run, `action` of `microbatch`, into starts until a time, and later ones,
  /// which may come first; or is refuted by rules, and has no time.
  struct Case {
    uint32_t action = 0, microbatch = 0;
    Time time = -1;
    bool isLateFirst = false;
  };
  std::vector<Case> cases;

  /// The argument in a sentence.
  std::string why(const Units &units = {}) const;
};

/// When the parts of a microbatch begin by stage, at the earliest: when it is
/// alone. O(stages + edges).
struct UncontendedTimes {
  explicit UncontendedTimes(const Workload &load);

  std::vector<Time> firstF, firstI; ///< By stage.
  /// From the begin of F to the end of I, at least, however late F begins.
  std::vector<Time> roundTrip;
};

/// The largest of the bounds that follow from each rank by itself: that it
/// works one action after another, from when it can begin, until what others
/// do after it ends, and what fits its room meanwhile. O(stages + edges +
/// in-flight microbatches of ranks).
ResourceBound resourceBound(const Workload &load,
                            Objective objective = Objective::Makespan);

/// The bound that follows from one rank, which hosts a stage.
ResourceBound resourceBoundOf(const Workload &load, RankId rank,
                              Objective objective = Objective::Makespan);

/// (time - least) / least, in units of 10^-9.
Time gapOf(Time time, Time least);
} // namespace ppcc
