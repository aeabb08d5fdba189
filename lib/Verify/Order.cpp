// Checks that on its rank an action stands behind those of its own stage that
// it needs.
#include "Report.h"
#include "ppcc/Analysis/Dependences.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

class OrderChecker : IndexedJudge {
public:
  using IndexedJudge::IndexedJudge;

  void check() {
    for (RankId rank : program.ranks()) {
      ActionId end = program.end(rank), groupEnd = program.begin(rank);
      for (ActionId id : RowRange{groupEnd, end}) {
        if (id == groupEnd)
          groupEnd = program.groupEnd(id, rank);
        forEachOwnNeed(program, index, id, [&](ActionId needed) {
          if (needed >= groupEnd && needed < end)
            tell(id, needed);
        });
        if (isSaturated())
          return;
      }
    }
  }

private:
  void tell(ActionId row, ActionId needed) const {
    report<diag::RunsBefore>(row, cell(row), cell(needed))
        .note(place(needed), "`{}` is here, {} behind it", cell(needed),
              needed.value - row.value == 1
                  ? "the next action"
                  : fmt::format("{} actions", needed.value - row.value));
  }
};

} // namespace

void ppcc::verifyOrder(const Program &program, PassContext &context) {
  checkIndexed<OrderChecker>(program, context);
}
