// The passes of this library, the orders of messages, and the ways to post them
// together.
#pragma once

#include "ppcc/Analysis/Run/TorchSteps.h"
#include "ppcc/IR/Calls.h"
#include "ppcc/IR/Transport.h"
#include "ppcc/Pass/Pass.h"

namespace ppcc {

/// The flat `program` with loops for what repeats itself on a rank: the same
/// kinds, stages, peers, phases, groups and sites, microbatches advancing by a
/// constant. Loops do not nest; those that save the most rows are taken first.
/// The candidates are the repeats whose period two rows in a row were seen
/// before. O(actions) for schedules, whose repeats seldom overlap.
Program rolled(const Program &program);

/// The pass `roll`.
PassResult roll(Program &program, PassContext &context);
/// The pass `unroll`.
PassResult unroll(Program &program, PassContext &context);

/// The pairs, which are sorted and each there once, in an order in which many
/// connect at the same time. They are dealt to rounds, each to the first in
/// which both ranks are free (a greedy edge colouring: fewer than twice as many
/// rounds as the busiest rank has pairs); round after round, sorted in each. A
/// rank that walks the list from front to back, and meets its peer at each pair
/// that holds it, never waits in a cycle: each waits for an earlier pair only.
/// O(pairs * pairs of the busiest rank / 64).
std::vector<RankPair> connectionOrder(uint32_t numRanks,
                                      ArrayRef<RankPair> pairs);

/// The pass `preconnect`: fills Program::preconnect from the messages.
PassResult preconnect(Program &program, PassContext &context);

/// The ways of Fusions.def.
enum class Fusion : uint8_t {
#define FUSION(Name, Text, Fuse, Places, Summary) Name,
#include "ppcc/Transforms/Fusions.def"
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

/// The pass `fuse-comm`.
Pass fuseComm(FuseOptions options);

/// The orders of CommOrders.def.
enum class CommOrder : uint8_t {
#define COMM_ORDER(Name, Text, Plan, RespectsPrefetch, Summary) Name,
#include "ppcc/Transforms/CommOrders.def"
};

struct CommPlan;

/// A row of the table of orders.
struct CommOrderInfo {
  CommOrder order;
  StringRef name;
  StringRef summary;
  /// Writes all rows and messages; false after a diagnostic. Null where the
  /// order makes no plan of its own.
  bool (*plan)(CommPlan &plan);
  /// Whether it posts no more receives ahead than InjectCommOptions::prefetch.
  bool respectsPrefetch;
};

/// All orders, as in CommOrders.def.
ArrayRef<CommOrderInfo> commOrders();

/// The order called `name`.
std::optional<CommOrder> findCommOrder(StringRef name);

/// The best order of more actions is not looked for.
inline constexpr size_t maxActionsForBest = 2'000'000;

/// Why an order places its rows where they are, for those who ask whether it
/// goes on so.
struct PlanTimes {
  /// Of an action or a group its end or, in a sweep, the sweep. Of a message
  /// when it is due (or the sweep), its slack, when it is there, and the row
  /// that makes it.
  struct OfRow {
    int64_t at = 0, slack = 0, arrival = 0, producer = 0;
  };
  std::vector<OfRow> rows; ///< Of the program with messages.
  // By time, of the program without messages:
  std::vector<int64_t> starts, ends; ///< Where messages never wait.
  std::vector<int64_t> slacks;       ///< Of what a row reads.
  Time maxSlack = 0;
  std::optional<Time> latency; ///< Of all messages; else what the costs say.
};

/// How messages are placed: the options of the pass.
struct InjectCommOptions {
  CommOrder order = CommOrder::ReadyTime;
  std::optional<Time> latency; ///< Of a message; else what the costs say.
  std::optional<uint32_t> prefetch;
  std::optional<TorchTarget> torch;
  /// That the best order is for.
  std::vector<Transport> transports{*findTransport("stream")};
  PlanTimes *times = nullptr; ///< To be filled, unless the order is the best.
};

/// `program` with its messages: for each result that a stage on another rank
/// reads, a send on the rank of the stage that makes it and a receive on the
/// rank of each reader. Orders that plan with time take a message to last
/// `latency`, else what the costs of the program say. At most `prefetch`
/// receives of an edge stand before the actions or groups that read them. In a
/// sweep the steps of `torch`, if given, take turns of their own. The best
/// order is that of the others with the least makespan on the first of the
/// transports, of those that reach their end on all; the default one when none
/// does. A message carries the site of its producer; a send has the producer's
/// phase, a receive that of the row before which it is placed. Nothing, after a
/// diagnostic, when the program has communication already or waits for itself.
/// O(actions + messages), for each transport when it is the best.
std::optional<Program> injectComm(const Program &program,
                                  const InjectCommOptions &options,
                                  DiagnosticEngine &diags,
                                  SourceManager &sources);

/// The pass `inject-comm`.
Pass injectComm(InjectCommOptions options);

} // namespace ppcc
