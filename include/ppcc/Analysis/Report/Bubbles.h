// When ranks do nothing, and what they wait for then.
#pragma once

#include "ppcc/Analysis/Run/Simulation.h"
#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// What a rank without work waits for.
enum class BubbleCause : uint8_t {
  Rank,          ///< Another rank computes what it needs.
  Communication, ///< What it needs is computed, and on its way or queued.
  End,           ///< Nothing: its work is done, others still run.
  Channel,       ///< An action on another lane of its own has not ended.
};

/// A time in which a rank computes nothing, for one reason.
struct Bubble {
  Time begin = 0, end = 0;
  BubbleCause cause = BubbleCause::End;
  RankId awaited; ///< Of BubbleCause::Rank.
  PhaseId phase;  ///< Of the action after it; that of the last at the end.
};

/// Explains bubbles by the causes in a simulation. 4 bytes a row.
class Bubbles {
public:
  Bubbles(const Program &program, const TimedRun &timed);

  /// Calls `visit` for each bubble of a rank, in order, from 0 to the makespan.
  /// Amortized O(actions of the rank).
  void walk(RankId rank, function_ref<void(const Bubble &)> visit);

private:
  uint32_t computeOrigin(uint32_t row);
  void split(Bubble gap, RankId rank, uint32_t cause,
             function_ref<void(const Bubble &)> visit);

  const Program &program;
  const Durations &durations;
  const Simulation &simulation;
  std::vector<uint32_t> origins; ///< By row: a cause further back, if known.
};

} // namespace ppcc
