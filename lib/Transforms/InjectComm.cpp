// Inserts a send and a receive for each edge between ranks: the pass
// inject-comm.
//
// Algorithm: count the rows of each rank with its messages, then let the
// planner of the chosen order (CommOrders.def) write them. `best` runs each
// planner (with a prefetch bound, those that respect it), simulates the
// results, and takes the one with the least makespan on the first transport, of
// those that end on all transports. `ready-time` wins ties and is the result
// when no order ends.
// Invariant: a message has one send, on the rank of its producer, and one
// receive, on the rank of its reader. Actions that must follow messages are put
// back after those (Followers.h); the others keep their order.
// Cost: that of the planner. `best` adds one simulation for each order and
// transport, and rejects programs with more than maxActionsForBest actions.
// Example: P = 2, M = 1, with each planner:
//   rank 0: 0F0 0B0  ->  0F0 0SEND_F0 0RECV_B0 0B0
//   rank 1: 1F0 1B0  ->  1RECV_F0 1F0 1B0 1SEND_B0
#include "ppcc/Transforms/InjectComm.h"

#include "CommPlan.h"
#include "Followers.h"

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Basic/Diagnostics/Transforms.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;

/// Of a message, where the model gives none: a message takes some time, much
/// less than an action.
static constexpr Time planLatency = cost::unit / 20;

static constexpr CommOrderInfo orders[] = {
#define COMM_ORDER(Name, Text, Plan, RespectsPrefetch, Summary)                \
  {CommOrder::Name, Text, Summary, Plan, RespectsPrefetch},
#include "ppcc/Transforms/CommOrders.def"
#undef COMM_ORDER
};

ArrayRef<CommOrderInfo> ppcc::commOrders() { return orders; }

static const std::string orderNames =
    llvm::join(namesIn(orders, &CommOrderInfo::name), "|");

std::optional<CommOrder> ppcc::findCommOrder(StringRef name) {
  auto *info = findBy(orders, name, &CommOrderInfo::name);
  return info ? std::optional(info->order) : std::nullopt;
}

/// When `program` ends on the first of the transports; nothing when it does not
/// on all.
static std::optional<Time> endOf(const Program &program,
                                 ArrayRef<Transport> transports) {
  DiagnosticEngine quiet([](const Diagnostic &) {});
  std::optional<Time> end;
  if (!Analyses(program).messages().isInOrder())
    return std::nullopt;
  for (const Transport &transport : llvm::reverse(transports)) {
    const TimedRun *run = Analyses(program).timedRun(transport, quiet);
    if (!run)
      return std::nullopt;
    end = run->simulation.makespan;
  }
  return end;
}

static std::optional<Program> injectBest(const Program &program,
                                         InjectCommOptions options,
                                         DiagnosticEngine &diags,
                                         SourceManager &sources) {
  if (program.size() > maxActionsForBest)
    return diags.report<diag::TooLargeForBest>({}, program.size(),
                                               maxActionsForBest);
  auto with = [&](CommOrder order) {
    options.order = order;
    return injectComm(program, options, diags, sources);
  };
  auto best = with(CommOrder::ReadyTime); // Ends first, if several do.
  if (!best)
    return std::nullopt;
  std::optional<Time> end = endOf(*best, options.transports);
  for (const CommOrderInfo &info : orders) {
    if (!info.plan || info.order == CommOrder::ReadyTime ||
        (options.prefetch && !info.respectsPrefetch))
      continue;
    auto other = with(info.order);
    if (!other)
      continue;
    auto value = endOf(*other, options.transports);
    if (value && (!end || *value < *end)) {
      end = value;
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

static const PassOption<InjectCommOptions> injectOptions[] = {
    {{"order", orderNames, "where messages are placed"},
     [](InjectCommOptions &options, StringRef value) {
       auto order = findCommOrder(value);
       options.order = order.value_or(options.order);
       return order.has_value();
     }},
    {{"latency", "TIME", "of a message, for planning; else the model's"},
     [](InjectCommOptions &options, StringRef value) {
       options.latency = cost::parse(value);
       return options.latency.has_value();
     }},
    {{"prefetch", "N",
      "receives of an edge that may be posted ahead of their readers"},
     [](InjectCommOptions &options, StringRef value) {
       uint32_t bound = 0;
       if (value.getAsInteger(10, bound) || bound == 0)
         return false;
       options.prefetch = bound;
       return true;
     }},
    {{"torch-fsdp", "VERSION",
      "sweep as this PyTorch, with turns for what FSDP does"},
     [](InjectCommOptions &options, StringRef value) {
       auto version = parseTorchVersion(value);
       if (version)
         options.torch = TorchTarget{*version, /*fsdp=*/true};
       return version.has_value();
     }},
    {{"transport", transportNameList(), "what the best order is for"},
     [](InjectCommOptions &options, StringRef value) {
       return findTransports(value, options.transports);
     }},
};

PassFactory ppcc::injectComm() {
  return passFactory<InjectCommOptions>(injectOptions, {}, injectComm);
}

Pass ppcc::injectComm(InjectCommOptions options) {
  return [=](Program &program, PassContext &context) {
    if (options.order == CommOrder::None)
      return PassResult::Unchanged;
    return placeAroundFollowers(program, [&](const Program &rest) {
      return injectComm(rest, options, context.diags, context.sources);
    });
  };
}
