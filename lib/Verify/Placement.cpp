// Checks that each action is on the rank that hosts its stage.
#include "Report.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

class Placement final : public CheckPass {
public:
  void check(const Program &program, PassContext &context) const override {
    // A stage on the wrong rank brings all its microbatches; one report a rank
    // and stage will do.
    DenseSet<std::pair<uint64_t, uint32_t>> reported;
    for (RankId rank : program.ranks()) {
      for (ActionId i : program.rows(rank)) {
        Action action = program[i];
        RankId host = program.rankOfStage(action.pipe, action.stage);
        if (host == rank || (program.isFarEnd(action, rank) &&
                             program.otherEnd(action) == rank))
          continue;
        uint64_t stage = uint64_t(action.pipe.value) << 32 | action.stage.value;
        if (!reported.insert({stage, rank.value}).second)
          continue;
        reportAt<diag::WrongRank>(program, context, i, rank.value,
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
