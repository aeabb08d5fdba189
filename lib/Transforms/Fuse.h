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

/// The program with its messages fused; nothing after a diagnostic.
using FuseMessages = std::optional<Program> (*)(FusePlan &plan);

inline constexpr FuseMessages noFusion = nullptr;
std::optional<Program> fuseBatches(FusePlan &plan);
std::optional<Program> fuseMegatron(FusePlan &plan);
std::optional<Program> fuseMegatronEvenOdd(FusePlan &plan);

} // namespace ppcc
