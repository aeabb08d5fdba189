// Whether a program can run to its end, and what blocks it.
#pragma once

#include "ppcc/Analysis/EventRun.h"

namespace ppcc {

/// The event graph of a program on a transport, or by its data alone: run
/// without a clock, and explained where it blocks.
class EventGraph : private EventRun<NoClock> {
public:
  EventGraph(const Program &program, const ProgramIndex &index,
             const MessageIndex &messages, const Transport &transport)
      : EventRun(program, index, &messages, {&transport}) {}
  /// Each rank runs all its rows in one line, and waits for data alone.
  EventGraph(const Program &program, const ProgramIndex &index)
      : EventRun(program, index, nullptr, {nullptr, /*inLine=*/true}) {}

  using EventRun::Lack;
  using EventRun::lack;
  using EventRun::run;

  /// A unit at the head of its queues that cannot go on, and one thing that it
  /// waits for.
  struct Block {
    uint32_t unit;    ///< Its first row.
    ActionId blocked; ///< Its member that waits.
    Need need;
    uint32_t on; ///< The unit, at the head of its queues too, that `need.row`
                 ///< belongs to or is queued behind.
  };
  /// All that blocks the program, sorted by unit, after a run() that gave
  /// false. The messages are paired.
  std::vector<Block> blocks();
  /// The shortest circle of them, as WaitCycle.h has it.
  std::vector<Block> shortestCircle();

  /// The first row of what starts and ends with a row, after blocks().
  uint32_t unitOf(ActionId row) const { return units[row.value]; }

private:
  void linkUnits();
  std::optional<Need> unmetEnd(ActionId row) const;

  std::vector<uint32_t> units; ///< By row.
};

} // namespace ppcc
