// Checks that each action is on the rank that hosts its stage.
#include "ProgramCheck.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

void ppcc::verifyPlacement(const Program &program, PassContext &context) {
  // A stage on the wrong rank brings all its microbatches; one report a rank
  // and stage will do.
  std::set<std::tuple<RankId, PipeId, StageId>> reported;
  for (RankId rank : program.ranks())
    for (ActionId row : program.rows(rank)) {
      Action action = program[row];
      RankId host = program.rankOfStage(action.pipe, action.stage);
      if (host == rank || (program.isPeerSide(action, rank) &&
                           program.peerRank(action) == rank))
        continue;
      if (context.diags.saturated())
        return;
      if (reported.insert({rank, action.pipe, action.stage}).second)
        reportAt<diag::WrongRank>(program, context, row, rank.value,
                                  cell(program, action), action.stage.value,
                                  host.value);
    }
}
