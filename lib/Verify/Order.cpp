// Checks that on its rank an action stands behind those of its own stage that
// it needs.
#include "Report.h"
#include "ppcc/Analysis/Dependences.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

class Order final : public CheckPass {
public:
  bool runsAfterErrors() const override { return true; }

  void check(const Program &program, PassContext &context) const override {
    const ProgramIndex *index = indexOf(program, context);
    if (!index)
      return;
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
      ActionId end = program.end(RankId(rank));
      for (ActionId id = program.begin(RankId(rank)); id != end; ++id.value) {
        Action action = program[id];
        const KindInfo &info = program.kinds[action.kind];
        if (!info.isCompute())
          continue;
        for (unsigned rest = info.needs; rest; rest &= rest - 1) {
          auto needed = index->definer(action.pipe, action.stage,
                                       action.microbatch, rest & -rest);
          if (!needed || *needed <= id || *needed >= end ||
              inOneGroup(program, id, *needed))
            continue;
          reportAt<diag::RunsBefore>(program, context, id,
                                     cell(program, action),
                                     cell(program, *needed))
              .note(placeOf(program, *needed, context.sources), "`{}` is here",
                    cell(program, *needed));
          if (context.diags.saturated())
            return;
        }
      }
    }
  }
};

} // namespace

PassFactory ppcc::verifyOrder() { return passFactory<Order>(); }
