// What a run is limited by, where its time goes, and what would help.
#pragma once

#include "ppcc/Analysis/Report/Report.h"

namespace ppcc {

/// The time of all ranks without work, by cause.
struct IdleTime {
  Time ramp = 0;       ///< Before a rank's first action, and after its last.
  Time dependence = 0; ///< Another rank computes what is needed.
  Time messages = 0;   ///< What is needed is on its way, or queued.
  Time lanes = 0;      ///< Actions beside the compute actions.
};

/// What follows itself around and around in the steady state: each action waits
/// for the one before it, the first for the last of the round before.
struct SteadyStateCycle {
  std::vector<ActionId> actions; ///< Of a round, messages too, in time.
  uint32_t microbatches = 0;     ///< By which a round goes on.
  Time period = 0;
  Time messages = 0; ///< The part of it that is messages.
};

/// What limits of memory do to the time that no order can be shorter than.
struct MemoryCost {
  Time limits = 0;       ///< It falls by so much without them,
  Time oneMore = 0;      ///< and by so much with room for one more activation
  Amount activation = 0; ///< of this size
  RankId rank;           ///< here.
};

struct Findings {
  IdleTime idle;
  std::optional<SteadyStateCycle>
      steadyState; ///< None where nothing repeats itself.
  /// The makespan if messages took no time, in the same order; nothing where
  /// they take none.
  std::optional<Time> withoutMessages;
  std::optional<Makespans> jitter; ///< Nothing where times are always the same.
  MemoryCost memory;
};

/// O(actions).
Findings findingsOf(const Program &program, const TimedRun &timed,
                    const Report &report, const Transport &transport);

} // namespace ppcc
