// Checks that the members of a group need nothing of each other, and are either
// compute actions or messages.
#include "ProgramCheck.h"
#include "ppcc/Analysis/Index/Dependences.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

/// Both are messages, or compute actions of the rank alone.
static bool fitTogether(const KindInfo &a, const KindInfo &b) {
  auto standsAlone = [](const KindInfo &info) {
    return info.isAsync() || info.isCollective();
  };
  return a.isCompute() == b.isCompute() && !standsAlone(a) && !standsAlone(b);
}

static void checkGroup(RowRange group, const IndexedCheck &check) {
  const Program &program = check.program;
  ActionId begin = group.from;
  for (ActionId id : RowRange{ActionId(begin.value + 1), group.to})
    if (!fitTogether(program.kindOf(id), program.kindOf(begin))) {
      check.report<diag::MixedGroup>(id, check.cell(id), check.cell(begin));
      return;
    }
  for (ActionId id : group)
    forEachDependence(program, check.index, id, [&](ActionId needed) {
      if (group.contains(needed) && needed != id)
        check
            .report<diag::DependentOverlap>(id, check.cell(id),
                                            check.cell(needed))
            .note(check.place(needed), "`{}` is here", check.cell(needed));
    });
}

void ppcc::verifyGroups(const Program &program, PassContext &context) {
  if (!indexOf(program, context))
    return;
  IndexedCheck check(program, context);
  for (RankId rank : program.ranks())
    for (RowRange group : program.items(rank))
      if (group.size() > 1 && !check.isSaturated())
        checkGroup(group, check);
}
