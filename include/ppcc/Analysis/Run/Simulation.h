// When each action of a program runs, to the last digit.
#pragma once

#include "ppcc/Analysis/Cost/Durations.h"
#include "ppcc/Analysis/Index/MessageIndex.h"
#include "ppcc/Analysis/Run/Jitter.h"
#include "ppcc/IR/Transport.h"

namespace ppcc {

/// The run of a program in which each action starts as soon as it can.
///
/// A message starts when its queue has come to it and ends when its data has
/// come, or, where sends are stored, when a send has been posted. The rows of a
/// group that share a queue start at once and end at once. Where nodes say so,
/// a group gives what it made to other stages before its end, and starts before
/// all that it reads is there, so that no node waits.
struct Simulation {
  static constexpr uint32_t none = 0xFFFFFFFF;

  std::vector<Time> starts, ends; ///< By row.
  /// By row, the row whose end let it go on last: that of the action before it
  /// in its queue, of one that makes what it reads, or, for a message that
  /// waited for its other end, what let that one go on. `none` when it could
  /// start at once.
  std::vector<uint32_t> causes;
  /// By row of a collective on lane `compute`, the cause of its start: that of
  /// its end is what let the last of its ranks start.
  DenseMap<uint32_t, uint32_t> startCauses;
  Time makespan = 0; ///< The last end.
  std::vector<Durations::HookOffsets>
      hookOffsets; ///< By row; empty where none has any.

  uint32_t startCauseOf(ActionId row) const {
    auto own = startCauses.find(row.value);
    return own == startCauses.end() ? causes[row.value] : own->second;
  }
  Durations::HookOffsets hookOffsetsOf(ActionId row) const {
    return hookOffsets.empty() ? Durations::HookOffsets()
                               : hookOffsets[row.value];
  }
};

/// Runs the compute actions in the order of their ranks as soon as their data
/// is there: an edge between ranks takes its latency, nothing contends. The
/// sends and receives of the program count for nothing; each is given the time
/// that its message is on its way. Nothing when ranks wait for each other, or
/// what an action reads is made nowhere. The times must fit(). O(actions +
/// edges); 20 bytes an action. With jitter each time is a random one.
std::optional<Simulation> simulate(const Program &program,
                                   const ProgramIndex &index,
                                   const Durations &durations,
                                   const Jitter *jitter = nullptr);

/// Runs the program on a transport, by the rules of docs/verification.md. A
/// message is on its way for the latency of its edge once its send, and where
/// that waits for it its receive, has started; with a capacity, once there is
/// room for it. Nothing when ranks wait for each other, or a message lacks an
/// end. The times must fit(). O(actions + edges); 20 bytes an action, and what
/// EventRun takes; 16 more where sends are stored.
std::optional<Simulation>
simulate(const Program &program, const ProgramIndex &index,
         const MessageIndex &messages, const Durations &durations,
         const Transport &transport, const Jitter *jitter = nullptr);

/// The rows, in order of time, each of which let the next go on, up to the one
/// that ends last. O(actions).
std::vector<ActionId> criticalPath(const Simulation &simulation);

/// What a rank does in a simulation.
struct RankTimes {
  Time begin = 0, end = 0; ///< Of its first and last compute action.
  Time busy = 0;           ///< The sum of what its compute actions take.
  Time span() const { return end - begin; }
};

/// By rank. O(actions).
std::vector<RankTimes> rankTimes(const Program &program,
                                 const Durations &durations,
                                 const Simulation &simulation);

/// A run of a program, and what it was made with.
struct TimedRun {
  const Durations &durations;
  Simulation simulation;
  std::string transport; ///< On which it ran; `none` by data alone.
  Time bound = 0;        ///< The makespan by data alone.
};

} // namespace ppcc
