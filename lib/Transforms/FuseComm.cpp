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

static const std::string fusionNames =
    llvm::join(namesIn(table, &FusionInfo::name), "|");

static const PassOption<FuseOptions> fuseOptions[] = {
    {{"mode", fusionNames, "what is posted together"},
     [](FuseOptions &options, StringRef value) {
       const FusionInfo *info = findFusion(value);
       if (info)
         options.mode = info->fusion;
       return info != nullptr;
     }},
    {{"calls", "exchange|ring",
      "Megatron's functions: with one neighbour, or with all"},
     [](FuseOptions &options, StringRef value) {
       auto style = findCallStyle(value);
       options.calls = style.value_or(CallStyle::None);
       return options.calls != CallStyle::None;
     }},
    {{"transport", transportNameList(),
      "the transports on which the batches must be deadlock-free, separated by "
      "+"},
     [](FuseOptions &options, StringRef value) {
       return findTransports(value, options.transports);
     }},
};

PassFactory ppcc::fuseComm() {
  return passFactory<FuseOptions>(fuseOptions, {}, fuseComm);
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
