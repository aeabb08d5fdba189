#include "ppcc/Analysis/Report/Report.h"

using namespace ppcc;

/// (whole - part / parts) / whole.
static Rate idleRate(Time whole, __int128 part, size_t parts) {
  __int128 all = __int128(whole) * parts;
  if (all == 0)
    return {};
  return {Time(((all - part) * cost::unit * 2 + all) / (all * 2))};
}

static std::vector<PathSegment> segments(const Program &program,
                                         const Simulation &simulation) {
  std::vector<PathSegment> path;
  Time before = 0;
  std::vector<ActionId> rows = criticalPath(simulation);
  for (auto [i, row] : llvm::enumerate(rows)) {
    RankId rank = program.rankOf(row);
    Time end = simulation.ends[row.value];
    if (i + 1 != rows.size() && (program.rankOf(rows[i + 1]) != rank ||
                                 !program.kindOf(rows[i + 1]).isCompute()))
      end -= simulation.hookOffsetsOf(row).early;
    if (path.empty() || path.back().rank != rank)
      path.push_back({rank, row, row, 0, before, before, 0});
    PathSegment &segment = path.back();
    segment.last = row;
    segment.end = end;
    ++segment.rows;
    // What is not computed is spent on the way to the action, or in a queue.
    Time start =
        program.kindOf(row).isCompute() ? simulation.starts[row.value] : end;
    segment.communication += std::max<Time>(start - before, 0);
    before = end;
  }
  return path;
}

static RankReport rankReport(const Program &program, RankId rank,
                             const RankTimes &times, Bubbles &bubbles,
                             MemoryCurve &memory) {
  RankReport report;
  report.times = times;
  for (ActionId row : program.rows(rank)) {
    const KindInfo &info = program.kindOf(row);
    report.actions += info.occupiesRank();
    report.sends += info.isSend();
  }
  report.memory = memory.peak(rank);
  report.heldAtPeak = memory.heldAt(report.memory, rank);
  report.staticMemory = memory.model().staticOf(rank);
  report.memoryLimit = memory.model().limitOf(rank);
  bubbles.walk(rank, [&](const Bubble &bubble) {
    BubbleKey key{bubble.phase, bubble.cause, bubble.awaited};
    if (key.cause != BubbleCause::Rank)
      key.awaited = RankId();
    if (key.cause == BubbleCause::End)
      key.phase = PhaseId();
    report.bubbles[key] += bubble.end - bubble.begin;
  });
  return report;
}

Report ppcc::reportOf(const Program &program, const TimedRun &timed) {
  const Simulation &run = timed.simulation;
  Report report;
  report.makespan = run.makespan;
  report.bound = timed.bound;
  report.resources = resourceBound(Workload::of(program, timed.durations));
  report.criticalPath = segments(program, run);
  Bubbles bubbles(program, timed);
  MemoryCurve memory(program, run);
  std::vector<RankTimes> times = rankTimes(program, timed.durations, run);
  Time longest = 0;
  __int128 busy = 0;
  for (uint32_t rank = 0; rank != times.size(); ++rank) {
    report.ranks.push_back(
        rankReport(program, RankId(rank), times[rank], bubbles, memory));
    report.actions += report.ranks.back().actions;
    report.messages += report.ranks.back().sends;
    longest = std::max(longest, times[rank].span());
    busy += times[rank].busy;
  }
  report.bubbleRate = idleRate(longest, busy, times.size());
  report.globalBubbleRate = idleRate(report.makespan, busy, times.size());
  return report;
}
