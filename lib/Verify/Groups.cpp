// Checks that the members of a group need nothing of each other, and are either
// compute actions or messages.
#include "Report.h"
#include "ppcc/Analysis/Dependences.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

class Groups final : public CheckPass {
public:
  void check(const Program &program, PassContext &context) const override {
    const ProgramIndex *index = indexOf(program, context);
    if (!index)
      return;
    for (RankId rank : program.ranks()) {
      ActionId end = program.end(rank);
      for (ActionId group = program.begin(rank);
           group != end && !context.diags.saturated();) {
        ActionId groupEnd = program.groupEnd(group, rank);
        if (groupEnd.value - group.value > 1)
          checkGroup(program, *index, context, group, groupEnd);
        group = groupEnd;
      }
    }
  }

private:
  /// Both are messages, or compute actions of the rank alone.
  static bool fitTogether(const KindInfo &a, const KindInfo &b) {
    auto standsAlone = [](const KindInfo &info) {
      return info.isBeside() || info.meets();
    };
    return a.isCompute() == b.isCompute() && !standsAlone(a) && !standsAlone(b);
  }

  static void checkGroup(const Program &program, const ProgramIndex &index,
                         PassContext &context, ActionId begin, ActionId end) {
    for (ActionId id(begin.value + 1); id != end; ++id.value)
      if (!fitTogether(program.kindOf(id), program.kindOf(begin))) {
        reportAt<diag::MixedGroup>(program, context, id, cell(program, id),
                                   cell(program, begin));
        return;
      }
    for (ActionId id : RowRange{begin, end}) {
      forEachDependence(program, index, id, [&](ActionId needed) {
        if (needed >= begin && needed < end && needed != id)
          reportAt<diag::DependentOverlap>(
              program, context, id, cell(program, id), cell(program, needed))
              .note(placeOf(program, needed, context.sources), "`{}` is here",
                    cell(program, needed));
      });
    }
  }
};

} // namespace

PassFactory ppcc::verifyGroups() { return passFactory<Groups>(); }
