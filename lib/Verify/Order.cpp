// Checks that on its rank an action stands behind those of its own stage that
// it needs.
#include "Report.h"
#include "ppcc/Analysis/ProgramIndex.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

class OrderChecker : Judge {
public:
  OrderChecker(const Program &program, const ProgramIndex &index,
               PassContext &context)
      : Judge(program, context), index(index) {}

  void check() {
    for (RankId rank : program.ranks()) {
      ActionId end = program.end(rank), groupEnd = program.begin(rank);
      for (ActionId id : RowRange{groupEnd, end}) {
        if (id == groupEnd)
          groupEnd = program.groupEnd(id, rank);
        forEachOwnNeed(id, [&](ActionId needed) {
          if (needed >= groupEnd && needed < end)
            tell(id, needed);
        });
        if (isSaturated())
          return;
      }
    }
  }

private:
  /// Calls `visit(ActionId)` for each action that `row` needs of its own stage,
  /// or of its rank.
  template <class Visit> void forEachOwnNeed(ActionId row, Visit visit) const {
    for (ActionId needed : index.rules().neededBy(row))
      visit(needed);
    Action action = program[row];
    const KindInfo &info = program.kindOf(action);
    for (uint8_t slotBit : slotsIn(info.isCompute() ? info.needs : 0))
      if (auto needed = index.definer(action.pipe, action.stage,
                                      action.microbatch, slotBit))
        visit(*needed);
  }

  void tell(ActionId row, ActionId needed) const {
    report<diag::RunsBefore>(row, cell(row), cell(needed))
        .note(place(needed), "`{}` is here, {} behind it", cell(needed),
              needed.value - row.value == 1
                  ? "the next action"
                  : fmt::format("{} actions", needed.value - row.value));
  }

  const ProgramIndex &index;
};

} // namespace

PassFactory ppcc::verifyOrder() {
  return passFactory<IndexedPass<OrderChecker>>();
}
