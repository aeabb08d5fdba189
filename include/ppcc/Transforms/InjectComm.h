// Inserts a send and a receive on every edge that leaves a rank.
#pragma once

#include "ppcc/Analysis/TorchSteps.h"
#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Pass/PassOptions.h"

namespace ppcc {

/// The orders of CommOrders.def.
enum class CommOrder : uint8_t {
#define COMM_ORDER(Name, Text, Plan, Summary) Name,
#include "ppcc/Transforms/CommOrders.def"
#undef COMM_ORDER
};

/// A row of the table of orders.
struct CommOrderInfo {
  CommOrder order;
  llvm::StringRef name;
  llvm::StringRef summary;
};

/// All orders, as in CommOrders.def.
llvm::ArrayRef<CommOrderInfo> commOrders();

/// The order called `name`.
std::optional<CommOrder> findCommOrder(llvm::StringRef name);

/// `program` with its messages: for each result that a stage on another rank
/// reads, a send on the rank of the stage that makes it and a receive on the
/// rank of each reader. Orders that plan with time take a message to last
/// `latency`, else what the costs of the program say. At most `prefetch`
/// receives of an edge stand before the actions or groups that read them. In a
/// sweep the steps of `torch`, if given, take turns of their own. A
/// message carries the site of its producer; a send has the producer's phase, a
/// receive that of the row before which it is placed. Nothing, after a
/// diagnostic, when the program has communication already or waits for itself.
/// O(actions + messages).
std::optional<Program>
injectComm(const Program &program, CommOrder order, DiagnosticEngine &diags,
           SourceManager &sources, std::optional<Time> latency = std::nullopt,
           std::optional<uint32_t> prefetch = std::nullopt,
           std::optional<TorchTarget> torch = std::nullopt);

/// The arguments of injectComm(), by the options of the pass.
struct InjectCommOptions {
  CommOrder order = CommOrder::ReadyTime;
  std::optional<Time> latency;
  std::optional<uint32_t> prefetch;
  std::optional<TorchTarget> torch;
};

/// The pass `inject-comm`, with the options `order`, `latency`, `prefetch` and
/// `torch-fsdp`.
PassFactory injectComm();
std::unique_ptr<Pass> injectComm(InjectCommOptions options);

} // namespace ppcc
