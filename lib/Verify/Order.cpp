// Checks that on its rank an action stands after those of its own stage that
// it needs.
#include "ProgramCheck.h"
#include "ppcc/Analysis/Index/Dependences.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

static void reportRunsBefore(ActionId row, ActionId needed,
                             const ProgramCheck &check) {
  check.report<diag::RunsBefore>(row, check.cell(row), check.cell(needed))
      .note(check.place(needed), "`{}` is here, {} after it",
            check.cell(needed),
            needed.value - row.value == 1
                ? "the next action"
                : fmt::format("{} actions", needed.value - row.value));
}

void ppcc::verifyOrder(const Program &program, PassContext &context) {
  if (!indexOf(program, context))
    return;
  IndexedCheck check(program, context);
  for (RankId rank : program.ranks()) {
    ActionId end = program.end(rank), groupEnd = program.begin(rank);
    for (ActionId id : RowRange{groupEnd, end}) {
      if (id == groupEnd)
        groupEnd = program.groupEnd(id, rank);
      ActionId last = id;
      forEachOwnNeed(program, check.index, id, [&](ActionId needed) {
        if (needed >= groupEnd && needed < end)
          last = std::max(last, needed);
      });
      if (last != id)
        reportRunsBefore(id, last, check);
      if (check.isSaturated())
        return;
    }
  }
}
