// When ranks do nothing, and what they wait for then.
#include "ppcc/Analysis/Report/Report.h"

using namespace ppcc;

static constexpr uint32_t none = Simulation::none;

Bubbles::Bubbles(const Program &program, const TimedRun &timed)
    : program(program), durations(timed.durations),
      simulation(timed.simulation), origins(simulation.causes) {}

/// The compute action that let the messages before `row` go on, or none.
/// Shortens the way for the next that ask.
uint32_t Bubbles::computeOrigin(uint32_t row) {
  uint32_t origin = origins[row];
  while (origin != none && !program.kindOf(ActionId(origin)).occupiesRank())
    origin = origins[origin];
  while (row != origin && !program.kindOf(ActionId(row)).occupiesRank())
    row = std::exchange(origins[row], origin);
  return origin;
}

/// Splits the time in which a rank waits for the row `cause`: until that ends
/// its rank computes, from then on the result is on its way.
void Bubbles::split(Bubble gap, RankId rank, uint32_t cause,
                    function_ref<void(const Bubble &)> visit) {
  if (gap.begin >= gap.end)
    return;
  if (cause != none && !program.kindOf(ActionId(cause)).occupiesRank())
    cause = computeOrigin(cause);
  RankId awaited = cause == none ? rank : program.rankOf(ActionId(cause));
  Time produced = awaited == rank
                      ? gap.begin
                      : std::clamp(simulation.ends[cause], gap.begin, gap.end);
  if (gap.begin < produced)
    visit({gap.begin, produced, BubbleCause::Rank, awaited, gap.phase});
  if (produced < gap.end)
    visit({produced, gap.end, BubbleCause::Communication, rank, gap.phase});
}

void Bubbles::walk(RankId rank, function_ref<void(const Bubble &)> visit) {
  Bubble gap; // From the end of what ran before.
  for (ActionId row : program.rows(rank)) {
    const KindInfo &info = program.kindOf(row);
    if (!info.occupiesRank())
      continue;
    gap.phase = program[row].phase;
    gap.end = simulation.starts[row.value];
    uint32_t cause = simulation.startCauseOf(row);
    if (cause == none || !program.kindOf(ActionId(cause)).isCompute() ||
        !program.kindOf(ActionId(cause)).isAsync())
      split(gap, rank, cause, visit);
    else if (gap.begin < gap.end)
      visit({gap.begin, gap.end, BubbleCause::Channel, rank, gap.phase});
    gap.begin = std::max(gap.begin, gap.end);
    Time end = simulation.ends[row.value];
    if (info.isCollective()) { // It waits for the ranks that come later.
      gap.end = end - durations.of(program[row]);
      split(gap, rank, simulation.causes[row.value], visit);
    }
    gap.begin = std::max(gap.begin, end);
  }
  if (gap.begin < simulation.makespan)
    visit({gap.begin, simulation.makespan, BubbleCause::End, rank, gap.phase});
}
