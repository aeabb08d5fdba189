// Posts neighbouring sends and receives together.
#pragma once

#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Transport.h"
#include "ppcc/Pass/PassOptions.h"

namespace ppcc {

/// The ways of Fusions.def.
enum class Fusion : uint8_t {
#define FUSION(Name, Text, Fuse, Places, Summary) Name,
#include "ppcc/Transforms/Fusions.def"
#undef FUSION
};

struct FusePlan;

/// A row of the table of fusions.
struct FusionInfo {
  Fusion fusion;
  StringRef name;
  bool places; ///< The messages itself, so that inject-comm has nothing to do.
  StringRef summary;
  /// The program with its messages fused; nothing after a diagnostic. Null
  /// where there is nothing to do.
  std::optional<Program> (*fuse)(const FusePlan &plan);
};

/// All fusions, as in Fusions.def.
ArrayRef<FusionInfo> fusions();

/// The row of the fusion called `name`; null when there is none.
const FusionInfo *findFusion(StringRef name);

/// What `fuse-comm` does.
struct FuseOptions {
  Fusion mode = Fusion::Batch;
  CallStyle calls = CallStyle::Exchange;
  std::vector<Transport> transports{*findTransport("stream")};
};

/// The pass `fuse-comm`, with the options `mode`, `calls` and `transport`.
PassFactory fuseComm();
Pass fuseComm(FuseOptions options);

} // namespace ppcc
