// Checks that the members of a group need nothing of each other, and are either
// compute actions or messages.
#include "CheckerBase.h"
#include "ppcc/Analysis/Index/Dependences.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

class GroupChecker : IndexedCheckerBase {
public:
  using IndexedCheckerBase::IndexedCheckerBase;

  void check() {
    for (RankId rank : program.ranks())
      for (RowRange group : program.items(rank))
        if (group.size() > 1 && !isSaturated())
          checkGroup(group);
  }

private:
  /// Both are messages, or compute actions of the rank alone.
  static bool fitTogether(const KindInfo &a, const KindInfo &b) {
    auto standsAlone = [](const KindInfo &info) {
      return info.isAsync() || info.isCollective();
    };
    return a.isCompute() == b.isCompute() && !standsAlone(a) && !standsAlone(b);
  }

  void checkGroup(RowRange group) {
    ActionId begin = group.from;
    for (ActionId id : RowRange{ActionId(begin.value + 1), group.to})
      if (!fitTogether(program.kindOf(id), program.kindOf(begin))) {
        report<diag::MixedGroup>(id, cell(id), cell(begin));
        return;
      }
    for (ActionId id : group) {
      forEachDependence(program, index, id, [&](ActionId needed) {
        if (group.contains(needed) && needed != id)
          report<diag::DependentOverlap>(id, cell(id), cell(needed))
              .note(place(needed), "`{}` is here", cell(needed));
      });
    }
  }
};

} // namespace

void ppcc::verifyGroups(const Program &program, PassContext &context) {
  checkIndexed<GroupChecker>(program, context);
}
