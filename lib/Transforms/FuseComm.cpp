// Posts neighbouring sends and receives together.
#include "ppcc/Transforms/FuseComm.h"

#include "Followers.h"
#include "Fuse.h"

#include "ppcc/IR/Calls.h"

using namespace ppcc;

static constexpr FusionInfo table[] = {
#define FUSION(Name, Text, Fuse, Places, Summary)                              \
  {Fusion::Name, Text, Places, Summary},
#include "ppcc/Transforms/Fusions.def"
#undef FUSION
};

/// `|none|batch`.
static constexpr char fusionNames[] =
#define FUSION(Name, Text, Fuse, Places, Summary) "|" Text
#include "ppcc/Transforms/Fusions.def"
#undef FUSION
    ;

static constexpr FuseMessages fuseOf[] = {
#define FUSION(Name, Text, Fuse, Places, Summary) Fuse,
#include "ppcc/Transforms/Fusions.def"
#undef FUSION
};

ArrayRef<FusionInfo> ppcc::fusions() { return table; }

const FusionInfo *ppcc::findFusion(StringRef name) {
  const FusionInfo *found = llvm::find_if(
      table, [&](const FusionInfo &info) { return info.name == name; });
  return found == std::end(table) ? nullptr : found;
}

namespace {

class FuseComm final : public Pass {
public:
  explicit FuseComm(FuseOptions options) : options(std::move(options)) {}

  PassResult run(Program &program, PassContext &context) const override {
    FuseMessages fuse = fuseOf[size_t(options.mode)];
    if (!fuse)
      return PassResult::Unchanged;
    Followers followers(program);
    std::optional<Program> rest;
    if (!followers.empty())
      rest = followers.taken();
    FusePlan plan{rest ? *rest : program, options.calls, options.transports,
                  context};
    auto result = fuse(plan);
    if (!result)
      return PassResult::Failed;
    program = rest ? followers.putBack(*result) : std::move(*result);
    return PassResult::Changed;
  }

private:
  FuseOptions options;
};

const PassOption<FuseOptions> fuseOptions[] = {
    {{"mode", fusionNames + 1, "what is posted together"},
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
      "what the batches must be safe on; several with + between them"},
     [](FuseOptions &options, StringRef value) {
       return findTransports(value, options.transports);
     }},
};

} // namespace

PassFactory ppcc::fuseComm() {
  return passFactory<FuseComm, FuseOptions>(fuseOptions);
}

std::unique_ptr<Pass> ppcc::fuseComm(FuseOptions options) {
  return std::make_unique<FuseComm>(std::move(options));
}
