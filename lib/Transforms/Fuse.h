// What the fusions share.
#pragma once

#include "ppcc/IR/Transport.h"
#include "ppcc/Pass/Pass.h"

namespace ppcc {

/// What a fusion works with.
struct FusePlan {
  const Program &program;
  CallStyle calls;                ///< Of the fusions that place messages.
  ArrayRef<Transport> transports; ///< To be safe under.
  PassContext &context;
};

/// See FusionInfo::fuse.
using FuseMessages = std::optional<Program>(const FusePlan &plan);

inline constexpr FuseMessages *noFusion = nullptr;
FuseMessages fuseBatches, fuseMegatron, fuseMegatronEvenOdd;

} // namespace ppcc
