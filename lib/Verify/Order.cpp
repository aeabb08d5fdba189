// Checks that on its rank an action stands after those of its own stage that
// it needs.
#include "CheckerBase.h"
#include "ppcc/Analysis/Index/Dependences.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

class OrderChecker : IndexedCheckerBase {
public:
  using IndexedCheckerBase::IndexedCheckerBase;

  void check() {
    for (RankId rank : program.ranks()) {
      ActionId end = program.end(rank), groupEnd = program.begin(rank);
      for (ActionId id : RowRange{groupEnd, end}) {
        if (id == groupEnd)
          groupEnd = program.groupEnd(id, rank);
        forEachOwnNeed(program, index, id, [&](ActionId needed) {
          if (needed >= groupEnd && needed < end)
            reportRunsBefore(id, needed);
        });
        if (isSaturated())
          return;
      }
    }
  }

private:
  void reportRunsBefore(ActionId row, ActionId needed) const {
    report<diag::RunsBefore>(row, cell(row), cell(needed))
        .note(place(needed), "`{}` is here, {} after it", cell(needed),
              needed.value - row.value == 1
                  ? "the next action"
                  : fmt::format("{} actions", needed.value - row.value));
  }
};

} // namespace

void ppcc::verifyOrder(const Program &program, PassContext &context) {
  checkIndexed<OrderChecker>(program, context);
}
