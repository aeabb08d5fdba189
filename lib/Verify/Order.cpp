// Checks that on its rank an action stands behind those of its own stage that
// it needs.
#include "Report.h"
#include "ppcc/Analysis/ProgramIndex.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

class Order final : public CheckPass {
public:
  void check(const Program &program, PassContext &context) const override {
    const ProgramIndex *index = indexOf(program, context);
    if (!index)
      return;
    for (RankId rank : program.ranks()) {
      ActionId end = program.end(rank), groupEnd = program.begin(rank);
      for (ActionId id : RowRange{groupEnd, end}) {
        if (id == groupEnd)
          groupEnd = program.groupEnd(id, rank);
        forEachOwnNeed(program, *index, id, [&](ActionId needed) {
          if (needed >= groupEnd && needed < end)
            report(program, id, needed, context);
        });
        if (context.diags.saturated())
          return;
      }
    }
  }

private:
  /// Calls `visit(ActionId)` for each action that `row` needs of its own stage,
  /// or of its rank.
  template <class Visit>
  static void forEachOwnNeed(const Program &program, const ProgramIndex &index,
                             ActionId row, Visit visit) {
    for (ActionId needed : index.rules().neededBy(row))
      visit(needed);
    Action action = program[row];
    const KindInfo &info = program.kindOf(action);
    for (uint8_t slotBit : slotsIn(info.isCompute() ? info.needs : 0))
      if (auto needed = index.definer(action.pipe, action.stage,
                                      action.microbatch, slotBit))
        visit(*needed);
  }

  static void report(const Program &program, ActionId row, ActionId needed,
                     PassContext &context) {
    reportAt<diag::RunsBefore>(program, context, row, cell(program, row),
                               cell(program, needed))
        .note(placeOf(program, needed, context.sources),
              "`{}` is here, {} behind it", cell(program, needed),
              needed.value - row.value == 1
                  ? "the next action"
                  : fmt::format("{} actions", needed.value - row.value));
  }
};

} // namespace

PassFactory ppcc::verifyOrder() { return passFactory<Order>(); }
