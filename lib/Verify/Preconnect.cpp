// Checks that `preconnect`, where a program has it, names all ranks that
// exchange messages.
#include "ProgramCheck.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

void ppcc::verifyPreconnect(const Program &program, PassContext &context) {
  if (program.preconnect().empty())
    return;
  std::vector<RankPair> listed = program.preconnect();
  llvm::sort(listed);
  for (auto [ranks, first] : communicatingPairs(program))
    if (!context.diags.saturated() && !llvm::binary_search(listed, ranks))
      reportAt<diag::PairNotPreconnected>(program, context, first,
                                          ranks.low.value, ranks.high.value,
                                          cell(program, first));
}
