// A program with the times of its actions.
#pragma once

#include "ppcc/Analysis/Simulation.h"

namespace ppcc {

/// The run of a program.
struct TimedRun {
  const Durations &durations;
  Simulation simulation;
  std::string transport; ///< On which it ran; `none` by data alone.
  Time bound = 0;        ///< The makespan by data alone.
};

} // namespace ppcc
