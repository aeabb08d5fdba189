// Checks that on its rank an action stands behind those of its own stage that
// it needs.
#include "Report.h"
#include "ppcc/Analysis/ProgramIndex.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

class Order final : public CheckPass {
public:
  void check(const Program &program, PassContext &context) const override {
    const ProgramIndex *index = indexOf(program, context);
    if (!index)
      return;
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
      ActionId end = program.end(RankId(rank)),
               groupEnd = program.begin(RankId(rank));
      for (ActionId id = groupEnd; id != end; ++id.value) {
        if (id == groupEnd)
          groupEnd = program.groupEnd(id, RankId(rank));
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
    const KindInfo &info = program.kinds()[action.kind];
    for (unsigned rest = info.isCompute() ? info.needs : 0; rest;
         rest &= rest - 1)
      if (auto needed = index.definer(action.pipe, action.stage,
                                      action.microbatch, rest & -rest))
        visit(*needed);
  }

  static void report(const Program &program, ActionId row, ActionId needed,
                     PassContext &context) {
    reportAt<diag::RunsBefore>(program, context, row, cell(program, row),
                               cell(program, needed))
        .note(placeOf(program, needed, context.sources), "`{}` is here",
              cell(program, needed));
  }
};

} // namespace

PassFactory ppcc::verifyOrder() { return passFactory<Order>(); }
