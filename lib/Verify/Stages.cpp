// Checks that no stage stands apart from the others of its pipe.
#include "Report.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

class Stages final : public CheckPass {
public:
  void check(const Program &program, PassContext &context) const override {
    for (PipeId pipe : program.pipeIds())
      if (!program.pipe(pipe).gaps.empty())
        checkPipe(program, pipe, context);
  }

private:
  static void checkPipe(const Program &program, PipeId pipeId,
                        PassContext &context) {
    const Pipe &pipe = program.pipe(pipeId);
    BitVector joined(pipe.numStages());
    for (auto [from, to] : pipe.skipEdges) {
      joined.set(from.value);
      joined.set(to.value);
    }
    for (uint32_t stage = 0; stage + 1 < pipe.numStages(); ++stage)
      if (pipe.hasEdgeToNext(StageId(stage)))
        joined.set(stage, stage + 2);
    for (int stage = joined.find_first_unset();
         stage != -1 && !context.diags.saturated();
         stage = joined.find_next_unset(stage))
      context.diags.report<diag::StageAlone>(
          placeOfStage(program, pipeId, StageId(stage), context.sources), stage,
          pipe.name);
  }
};

} // namespace

PassFactory ppcc::verifyStages() { return passFactory<Stages>(); }
