// Inserts a send and a receive for each edge between ranks: the pass
// inject-comm.
//
// Algorithm: allocate the rows of each rank, sends and receives included; the
// planner of the chosen order (CommOrders.def) then decides where they go.
// `best` tries `ready-time` and the other planners, with a prefetch bound those
// that respect it. Of the results whose messages match in order and that are
// deadlock-free on all given transports it takes the one with the smallest
// makespan on the first of them. `ready-time` wins ties, and is the result when
// there is none, which verification then reports.
// Invariant: a message has one send, on the rank of its producer, and one
// receive, on the rank of its consumer. Compute actions keep their order.
// Actions that must follow a message are removed before planning, and inserted
// again right after it (CommPlan.h).
// Cost: the planners are linear in actions and messages, but for a logarithm of
// the ranks. `best` adds one simulation for each order and transport, and
// rejects programs with more than maxActionsForBest actions.
// Example: P = 2, M = 1; all planners agree:
//   rank 0: 0F0 0B0  ->  0F0 0SEND_F0 0RECV_B0 0B0
//   rank 1: 1F0 1B0  ->  1RECV_F0 1F0 1B0 1SEND_B0

#include "CommPlan.h"

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Basic/Diagnostics/Transforms.h"

using namespace ppcc;

/// The latency of messages for planning where the model gives none: not zero,
/// and much less than an action.
static constexpr Time planLatency = cost::unit / 20;

static constexpr CommOrderInfo orders[] = {
#define COMM_ORDER(Name, Text, Plan, RespectsPrefetch, Summary)                \
  {CommOrder::Name, Text, Summary, Plan, RespectsPrefetch},
#include "ppcc/Transforms/CommOrders.def"
};

ArrayRef<CommOrderInfo> ppcc::commOrders() { return orders; }

static const std::string orderNames =
    llvm::join(namesIn(orders, &CommOrderInfo::name), "|");

std::optional<CommOrder> ppcc::findCommOrder(StringRef name) {
  auto *info = findBy(orders, name, &CommOrderInfo::name);
  return info ? std::optional(info->order) : std::nullopt;
}

/// The makespan on the first transport; nothing if messages do not match in
/// order, or the program deadlocks on one of the transports.
static std::optional<Time> makespanOf(const Program &program,
                                      ArrayRef<Transport> transports) {
  DiagnosticEngine quiet([](const Diagnostic &) {});
  std::optional<Time> makespan;
  if (!Analyses(program).messages().isInOrder())
    return std::nullopt;
  for (const Transport &transport : llvm::reverse(transports)) {
    const TimedRun *run = Analyses(program).timedRun(transport, quiet);
    if (!run)
      return std::nullopt;
    makespan = run->simulation.makespan;
  }
  return makespan;
}

static std::optional<Program> injectBest(const Program &program,
                                         InjectCommOptions options,
                                         DiagnosticEngine &diags,
                                         SourceManager &sources) {
  if (program.size() > maxActionsForBest)
    return diags.report<diag::TooLargeForBest>({}, program.size(),
                                               maxActionsForBest);
  auto injectWith = [&](CommOrder order) {
    options.order = order;
    return injectComm(program, options, diags, sources);
  };
  auto best = injectWith(CommOrder::ReadyTime); // Wins ties.
  if (!best)
    return std::nullopt;
  std::optional<Time> makespan = makespanOf(*best, options.transports);
  for (const CommOrderInfo &info : orders) {
    if (!info.plan || info.order == CommOrder::ReadyTime ||
        (options.prefetch && !info.respectsPrefetch))
      continue;
    auto other = injectWith(info.order);
    if (!other)
      continue;
    auto value = makespanOf(*other, options.transports);
    if (value && (!makespan || *value < *makespan)) {
      makespan = value;
      best = std::move(other);
    }
  }
  return best;
}

std::optional<Program> ppcc::injectComm(const Program &program,
                                        const InjectCommOptions &options,
                                        DiagnosticEngine &diags,
                                        SourceManager &sources) {
  assert(program.ranksBegun() == program.numRanks());
  if (options.order == CommOrder::Best)
    return injectBest(program, options, diags, sources);
  PlanMessages *planMessages = orders[size_t(options.order)].plan;
  if (!planMessages)
    return program;
  const ProgramIndex &index = Analyses(program).index();
  auto result = allocateWithMessages(program, index, diags, sources);
  if (!result)
    return std::nullopt;
  Durations durations(program);
  std::optional<Time> latency = options.latency;
  if (!latency && !program.costs().hasMessageTimes())
    latency = planLatency;
  if (latency)
    durations.setLatency(*latency);
  if (options.times)
    options.times->latency = latency;
  CommWriter writer(program, *result, options.times);
  uint64_t messages = (result->size() - program.size()) / 2;
  CommPlan plan{
      program,          index,         durations,     writer, messages,
      options.prefetch, options.torch, options.times, diags,  sources};
  if (!planMessages(plan))
    return std::nullopt;
  return program.withRows(std::move(*result));
}

Pass ppcc::injectComm(InjectCommOptions options) {
  return [=](Program &program, PassContext &context) {
    if (options.order == CommOrder::None)
      return PassResult::Unchanged;
    return placeAroundFollowers(program, [&](const Program &withoutFollowers) {
      return injectComm(withoutFollowers, options, context.diags,
                        context.sources);
    });
  };
}
