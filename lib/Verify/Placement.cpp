// Checks that each action is on the rank that hosts its stage.
#include "Report.h"
#include "ppcc/Verify/Passes.h"

#include "llvm/ADT/DenseSet.h"

using namespace ppcc;

namespace {

class Placement final : public CheckPass {
public:
  void check(const Program &program, PassContext &context) const override {
    // A stage on the wrong rank brings all its microbatches; one report a rank
    // and stage will do.
    llvm::DenseSet<std::pair<uint64_t, uint32_t>> reported;
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
      for (uint32_t i = program.begin(RankId(rank)).value;
           i != program.end(RankId(rank)).value; ++i) {
        Action action = program[ActionId(i)];
        RankId host = program.rankOfStage(action.pipe, action.stage);
        if (host.value == rank)
          continue;
        uint64_t stage = uint64_t(action.pipe.value) << 32 | action.stage.value;
        if (!reported.insert({stage, rank}).second)
          continue;
        reportAt<diag::WrongRank>(program, context, ActionId(i), rank,
                                  cell(program, action), action.stage.value,
                                  host.value);
        if (context.diags.saturated())
          return;
      }
    }
  }
};

} // namespace

PassFactory ppcc::verifyPlacement() { return passFactory<Placement>(); }
