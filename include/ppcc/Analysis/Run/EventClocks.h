// When the events of a run happen.
#pragma once

#include "ppcc/Analysis/Cost/Durations.h"

namespace ppcc {

/// The clock of a run that asks only what can happen.
struct NoClock {
  static constexpr bool isTimed = false;
  struct Moment {};
  void setStart(ActionId, Moment) {}
  /// When a member of a running unit is through; the unit ends with its last.
  void setCompletion(ActionId, Moment) {}
  /// When what waits for the action may go on.
  void setEnd(ActionId, Moment) {}
  Moment startOf(ActionId, Moment) const { return {}; }
  Moment completionOf(ActionId) const { return {}; }
  void wait(Moment &, ActionId, Time) const {}
  /// When a queue begins its next unit after one that has ended.
  static Moment freeAfter(Moment, ActionId) { return {}; }
  static Moment later(Moment, Moment) { return {}; }
  /// The latest start so far of what starts together; the first has no cause.
  static Moment laterOrFirst(Moment, Moment) { return {}; }
  static Moment plus(Moment, Time) { return {}; }
  bool hasHookOffsets() const { return false; }
  Time early(ActionId) const { return 0; }
  Time late(ActionId) const { return 0; }
  Time edgeTime(const Action &, StageId) const { return 0; }
  Time message(const Action &) const { return 0; }
  Time time(ActionId) const { return 0; }
  Time time(ActionId, ActionId) const { return 0; }
};

/// What the events of a program take, for clocks that tell when they happen.
class CostClock {
public:
  static constexpr bool isTimed = true;

  CostClock(const Program &program, const Durations &durations)
      : program(program), durations(durations) {}

  /// From another rank.
  Time edgeTime(const Action &reader, StageId source) const {
    return durations.ofEdge(reader.pipe, source, reader.stage,
                            reader.microbatch);
  }
  Time message(const Action &action) const {
    return durations.ofMessage(program, action);
  }
  Time time(ActionId row) const { return durations.of(program[row]); }
  Time time(ActionId begin, ActionId end) const {
    return durations.of(program, begin, end);
  }

protected:
  const Program &program;
  const Durations &durations;
};

/// When the rows of a program start and end.
struct RowTimes {
  std::vector<int64_t> starts, ends;
};

/// Notes when rows start and end that wait for data alone; groups end as one.
class RowClock : public CostClock {
public:
  using Moment = int64_t;

  RowClock(const Program &program, const Durations &durations, RowTimes &times)
      : CostClock(program, durations), times(times) {
    times.starts.resize(program.size());
    times.ends.resize(program.size());
  }

  void setStart(ActionId row, Moment start) { times.starts[row.value] = start; }
  void setCompletion(ActionId, Moment) {}
  void setEnd(ActionId row, Moment at) { times.ends[row.value] = at; }
  Moment startOf(ActionId row, Moment) const { return times.starts[row.value]; }
  Moment completionOf(ActionId) const { return 0; }
  void wait(Moment &ready, ActionId row, Time delay) const {
    ready = std::max(ready, times.ends[row.value] + delay);
  }
  static Moment freeAfter(Moment end, ActionId) { return end; }
  static Moment later(Moment a, Moment b) { return std::max(a, b); }
  static Moment laterOrFirst(Moment a, Moment b) { return std::max(a, b); }
  static Moment plus(Moment moment, Time time) { return moment + time; }
  bool hasHookOffsets() const { return false; }
  Time early(ActionId) const { return 0; }
  Time late(ActionId) const { return 0; }

protected:
  RowTimes &times;
};

} // namespace ppcc
