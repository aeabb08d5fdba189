// When ranks do nothing, and what they wait for then.
#include "ppcc/Analysis/Bubbles.h"

using namespace ppcc;

static constexpr uint32_t none = Simulation::none;

Bubbles::Bubbles(const Program &program, const Simulation &simulation)
    : program(program), simulation(simulation), origins(simulation.causes) {}

/// The compute action that let the messages before `row` go on, or none.
/// Shortens the way for the next that ask.
uint32_t Bubbles::computeBehind(uint32_t row) {
  uint32_t origin = origins[row];
  while (origin != none && !program.kindOf(ActionId(origin)).occupiesRank())
    origin = origins[origin];
  while (row != origin && !program.kindOf(ActionId(row)).occupiesRank())
    row = std::exchange(origins[row], origin);
  return origin;
}

void Bubbles::walk(RankId rank, function_ref<void(const Bubble &)> visit) {
  Time free = 0;
  PhaseId phase;
  auto put = [&](Time begin, Time end, BubbleCause cause, RankId awaited) {
    if (begin < end)
      visit({begin, end, cause, awaited, phase});
  };
  for (ActionId row : program.rows(rank)) {
    if (!program.kindOf(row).occupiesRank())
      continue;
    phase = program[row].phase;
    Time start = simulation.starts[row.value];
    if (start > free) {
      uint32_t cause = simulation.causes[row.value];
      if (cause != none && program.kindOf(ActionId(cause)).isCompute() &&
          program.kindOf(ActionId(cause)).isBeside()) {
        put(free, start, BubbleCause::Lane, rank);
        free = std::max(free, simulation.ends[row.value]);
        continue;
      }
      if (cause != none && !program.kindOf(ActionId(cause)).occupiesRank())
        cause = computeBehind(cause);
      RankId awaited = cause == none ? rank : program.rankOf(ActionId(cause));
      // From the end of what it waited for the result is on its way.
      Time made = cause == none ? 0 : simulation.ends[cause];
      Time split = awaited == rank ? free : std::clamp(made, free, start);
      put(free, split, BubbleCause::Rank, awaited);
      put(split, start, BubbleCause::Communication, rank);
    }
    free = std::max(free, simulation.ends[row.value]);
  }
  put(free, simulation.makespan, BubbleCause::End, rank);
}
