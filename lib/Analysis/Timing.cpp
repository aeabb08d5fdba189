#include "ppcc/Analysis/Timing.h"

using namespace ppcc;

std::optional<Timing> ppcc::timeProgram(const Program &program,
                                        const Transport &transport,
                                        DiagnosticEngine &diags) {
  Durations durations(program);
  // What ends last waited for each row, and its message, at most once.
  if (!durations.fits(program, program.size())) {
    diags.report<diag::SimulationTooLong>(Place(program.name()));
    return std::nullopt;
  }
  ProgramIndex index(program);
  bool hasMessages = program.firstMessage().has_value();
  std::optional<Simulation> run;
  if (index.fits())
    run = simulate(program, index, durations);
  Time bound = run ? run->makespan : 0;
  if (run && hasMessages)
    run = simulate(program, index, MessageIndex(program, index), durations,
                   transport);
  if (!run) {
    diags.report<diag::CannotSimulate>(
        Place(program.name()),
        hasMessages ? "under `" + transport.name + "`" : "by data alone");
    return std::nullopt;
  }
  return Timing{std::move(durations), std::move(*run),
                hasMessages ? transport.name : "none", bound};
}
