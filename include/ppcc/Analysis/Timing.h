// A program with the times of its actions, or an error that says why there are
// none.
#pragma once

#include "ppcc/Analysis/Simulation.h"
#include "ppcc/Basic/Diagnostics.h"

namespace ppcc {

/// The run of a program.
struct Timing {
  Durations durations;
  Simulation simulation;
  std::string transport; ///< On which it ran; `none` by data alone.
  Time bound = 0;        ///< The makespan by data alone.
};

/// Runs a program on a transport; one without messages by data alone. Reports
/// times that are too large, and a program that does not reach its end.
/// O(actions + edges).
std::optional<Timing> timeProgram(const Program &program,
                                  const Transport &transport,
                                  DiagnosticEngine &diags);

} // namespace ppcc
