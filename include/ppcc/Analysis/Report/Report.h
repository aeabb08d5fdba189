// The figures of a program's run, and its bubbles.
#pragma once

#include "ppcc/Analysis/Cost/ResourceBound.h"
#include "ppcc/Analysis/Report/MemoryCurve.h"

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

/// A share of time, rounded to nine places.
struct Rate {
  Time value = 0; ///< In units of 10^-9.
};

/// What a bubble is counted under.
struct BubbleKey {
  PhaseId phase; ///< Of the action that waits; none of BubbleCause::End.
  BubbleCause cause = BubbleCause::End;
  RankId awaited; ///< Of BubbleCause::Rank.
  auto operator<=>(const BubbleKey &) const = default;
};

/// The figures of a rank.
struct RankReport {
  RankTimes times;
  uint64_t actions = 0; ///< Compute actions.
  uint64_t sends = 0;
  MemoryPeak memory;
  std::vector<HeldMemory> heldAtPeak; ///< By microbatches under way.
  decimal::Sum staticMemory = 0;
  std::optional<Amount> memoryLimit;
  std::map<BubbleKey, Time> bubbles; ///< Their sum is makespan - busy.
};

/// A part of the critical path: rows of one rank, one after another.
struct PathSegment {
  RankId rank;
  ActionId first, last;
  uint64_t rows = 0;
  Time begin = 0, end = 0;
  Time communication = 0; ///< The part of it that is messages.
};

/// The figures of a run.
struct Report {
  Time makespan = 0;
  Time bound = 0;          ///< The makespan by data alone.
  ResourceBound resources; ///< Of every order of this kind of actions.
  /// Of the rank with the longest span, as in the zero-bubble papers: (span -
  /// work) / span, where the work is that of the average rank.
  Rate bubbleRate;
  Rate globalBubbleRate; ///< (makespan - work) / makespan.
  uint64_t actions = 0, messages = 0;
  std::vector<RankReport> ranks;
  std::vector<PathSegment> criticalPath;
};

/// Sums a run up. O(actions).
Report reportOf(const Program &program, const TimedRun &timed);
} // namespace ppcc
