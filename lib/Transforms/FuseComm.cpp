// Posts neighbouring sends and receives together.

#include "CommPlan.h"
#include "Fuse.h"

using namespace ppcc;

static constexpr FusionInfo table[] = {
#define FUSION(Name, Text, Fuse, Places, Summary)                              \
  {Fusion::Name, Text, Places, Summary, Fuse},
#include "ppcc/Transforms/Fusions.def"
};

ArrayRef<FusionInfo> ppcc::fusions() { return table; }

const FusionInfo *ppcc::findFusion(StringRef name) {
  return findBy(table, name, &FusionInfo::name);
}

Pass ppcc::fuseComm(FuseOptions options) {
  return [=](Program &program, PassContext &context) {
    FuseMessages *fuse = table[size_t(options.mode)].fuse;
    if (!fuse)
      return PassResult::Unchanged;
    return placeAroundFollowers(program, [&](const Program &rest) {
      return fuse({rest, options.calls, options.transports, context});
    });
  };
}
