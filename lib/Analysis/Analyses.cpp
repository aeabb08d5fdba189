#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"

using namespace ppcc;

/// The run, or nothing when the program does not reach its end.
static std::optional<TimedRun> runWithClock(const Program &program,
                                            const Transport *transport) {
  Analyses analyses(program);
  const ProgramIndex &index = analyses.index();
  const Durations &durations = analyses.durations();
  std::optional<Simulation> run;
  if (index.fits())
    run = simulate(program, index, durations);
  Time bound = run ? run->makespan : 0;
  if (run && transport)
    run = simulate(program, index, analyses.messages(), durations, *transport);
  if (!run)
    return std::nullopt;
  return TimedRun{durations, std::move(*run),
                  transport ? transport->name : "none", bound};
}

const TimedRun *Analyses::timedRun(const Transport &transport,
                                   DiagnosticEngine &diags) const {
  // What ends last waited for each row, and its message, at most once.
  if (!durations().fits(program, program.size()))
    return diags.report<diag::SimulationTooLong>(Location(program.name()));
  bool hasMessages = program.firstMessage().has_value();
  const auto &run = keep(
      [&] { return runWithClock(program, hasMessages ? &transport : nullptr); },
      hasMessages ? transport.name : "none");
  if (run)
    return &*run;
  return diags.report<diag::CannotSimulate>(
      Location(program.name()),
      hasMessages ? "under `" + transport.name + "`" : "by data alone");
}
