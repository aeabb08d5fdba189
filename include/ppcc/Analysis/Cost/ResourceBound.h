// What no order of a placement's actions can do better than.
#pragma once

#include "ppcc/Analysis/Cost/Workload.h"

namespace ppcc {

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
  /// Or one of two arguments about memory alone, or that of the copies to the
  /// host.
  enum class Kind : uint8_t {
    Work,
    MemoryTime,
    Rounds,
    Copies
  } kind = Kind::Work;
  Begin begin = Begin::FirstForward;
  End end = End::Work;
  Time head = 0; ///< Before it begins.
  Time work = 0; ///< From then on, at least, without the tail.
  Time tail = 0; ///< Behind the work.
  uint64_t rounds = 0, inRound = 0; ///< Of Kind::Rounds.

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

/// (time - bound) / bound, in units of 10^-9.
Time gapOf(Time time, const ResourceBound &bound);

} // namespace ppcc
