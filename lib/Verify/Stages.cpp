// Checks that no stage stands apart from the others of its pipe.
#include "ProgramCheck.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

void ppcc::verifyStages(const Program &program, PassContext &context) {
  for (PipeId id : program.pipeIds()) {
    const Pipe &pipe = program.pipe(id);
    if (pipe.gaps.empty())
      continue;
    BitVector joined(pipe.numStages());
    forEachEdge(pipe, [&](PipeId, StageId from, StageId) {
      joined.set(from.value); // In both directions.
    });
    for (int stage = joined.find_first_unset();
         stage != -1 && !context.diags.saturated();
         stage = joined.find_next_unset(stage))
      context.diags.report<diag::IsolatedStage>(
          locationOfStage(program, id, StageId(stage), context.sources), stage,
          pipe.name);
  }
}
