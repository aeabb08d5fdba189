// Events that wait for each other, and the shortest cycle of such waits.
#pragma once

#include "ppcc/Analysis/Run/EventRun.h"

namespace ppcc {

/// The event graph of a program on a transport, or by its data alone: run
/// without a clock, and explained where it blocks.
class EventGraph : private EventRun<NoClock> {
public:
  using EventRun::EventRun;
  using EventRun::MissingDependence;
  using EventRun::missingDependence;
  using EventRun::run;

  /// A unit at the head of its queues that cannot go on, and one thing that it
  /// waits for.
  struct BlockedAction {
    uint32_t unit;    ///< Its first row.
    ActionId blocked; ///< Its member that waits.
    Need need;
    uint32_t on; ///< The unit, at the head of its queues too, that `need.row`
                 ///< belongs to or is queued behind.
  };
  /// All that blocks the program, sorted by unit, after a run() that gave
  /// false. The messages are paired.
  std::vector<BlockedAction> blocks();
  /// The shortest cycle of them, as shortestCycle() has it.
  std::vector<BlockedAction> shortestCycle();

  /// Whether a row has started, in that run.
  bool hasStarted(ActionId row) const { return state(row) != Waiting; }

  /// The first row of what starts and ends with a row.
  uint32_t unitOf(ActionId row) const {
    ActionId first = groups[row].from;
    while (!isMember(row, first))
      ++first.value;
    return first.value;
  }

private:
  void linkRows();
  template <class Visit> void forEachEndNeed(ActionId row, Visit visit) const;
};

/// `from` cannot go on before `to` does: numbers of ranks, or of anything else
/// that waits.
struct Wait {
  uint32_t from, to;
};

/// The waits of the shortest cycle, as positions in `waits`: each ends where
/// the next begins, the smallest `from` first. A near-shortest cycle where
/// there are very many waits. `waits` are sorted by `from`, and everything
/// waited for waits itself. Empty for no waits.
std::vector<uint32_t> shortestCycle(ArrayRef<Wait> waits);

/// Hops of a cycle that a message shows.
inline constexpr size_t maxHops = 12;

/// `1 and 2`, `0, 1 and 2`; of more than maxHops ranks the first ones.
std::string rankList(ArrayRef<RankId> ranks);

} // namespace ppcc
