// Inserts a send and a receive on every edge that leaves a rank.
#include "ppcc/Transforms/InjectComm.h"

#include "CommPlan.h"

#include "ppcc/IR/Place.h"

#include <variant>

using namespace ppcc;

/// Rows of a program with communication; 16 bytes each.
static constexpr uint64_t maxRows = uint64_t(1) << 29;

/// Of a message, where the model gives none: a message takes some time, much
/// less than an action.
static constexpr Time planLatency = cost::unit / 20;

static constexpr CommOrderInfo orders[] = {
#define COMM_ORDER(Name, Text, Plan, Summary) {CommOrder::Name, Text, Summary},
#include "ppcc/Transforms/CommOrders.def"
#undef COMM_ORDER
};

/// `|none|sweep`.
static constexpr char orderNames[] =
#define COMM_ORDER(Name, Text, Plan, Summary) "|" Text
#include "ppcc/Transforms/CommOrders.def"
#undef COMM_ORDER
    ;

static constexpr PlanMessages planOf[] = {
#define COMM_ORDER(Name, Text, Plan, Summary) Plan,
#include "ppcc/Transforms/CommOrders.def"
#undef COMM_ORDER
};

llvm::ArrayRef<CommOrderInfo> ppcc::commOrders() { return orders; }

std::optional<CommOrder> ppcc::findCommOrder(llvm::StringRef name) {
  for (const CommOrderInfo &info : orders)
    if (info.name == name)
      return info.order;
  return std::nullopt;
}

/// The rows of each rank with their messages, or the total when that is above
/// the limit.
static std::variant<std::vector<uint32_t>, uint64_t>
countRows(const Program &program, const ProgramIndex &index) {
  std::vector<uint64_t> rows(program.ranksBegun());
  uint64_t total = program.size();
  for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
    rows[rank] += program.size(RankId(rank));
    for (uint32_t row = program.begin(RankId(rank)).value;
         row != program.end(RankId(rank)).value; ++row) {
      Action action = program[ActionId(row)];
      forEachMessage(program, index, action, [&](uint8_t, StageId reader) {
        ++rows[rank];
        ++rows[program.rankOfStage(action.pipe, reader).value];
        total += 2;
      });
    }
  }
  if (total > maxRows)
    return total;
  return std::vector<uint32_t>(rows.begin(), rows.end());
}

std::optional<Program>
ppcc::injectComm(const Program &program, const ProgramIndex &index,
                 CommOrder order, DiagnosticEngine &diags,
                 SourceManager &sources, std::optional<Time> latency,
                 std::optional<uint32_t> prefetch) {
  assert(program.ranksBegun() == program.numRanks);
  PlanMessages planMessages = planOf[static_cast<size_t>(order)];
  if (!planMessages)
    return program;
  if (auto row = program.firstMessage()) {
    diags.report<diag::HasCommunication>(placeOf(program, *row, sources),
                                         program.rankOf(*row).value,
                                         cell(program, program[*row]));
    return std::nullopt;
  }
  if (!index.fits()) {
    diags.report<diag::TooFewActions>({}, program.size(), index.numPairs());
    return std::nullopt;
  }
  auto rows = countRows(program, index);
  if (auto *total = std::get_if<uint64_t>(&rows)) {
    diags.report<diag::TooManyMessages>({}, *total, maxRows);
    return std::nullopt;
  }
  Durations durations(program);
  durations.latency =
      latency.value_or(program.costs.latency.value_or(planLatency));
  Program result = program.withoutRows();
  result.layout(std::get<0>(rows));
  CommWriter writer(program, result);
  uint64_t messages = (result.size() - program.size()) / 2;
  CommPlan plan{program,  index,    durations, writer,
                messages, prefetch, diags,     sources};
  if (!planMessages(plan))
    return std::nullopt;
  return result;
}

namespace {

struct InjectCommOptions {
  CommOrder order = CommOrder::ReadyTime;
  std::optional<Time> latency;
  std::optional<uint32_t> prefetch;
};

class InjectComm final : public Pass {
public:
  explicit InjectComm(InjectCommOptions options) : options(options) {}

  PassResult run(Program &program, PassContext &context) const override {
    if (options.order == CommOrder::None)
      return PassResult::Unchanged;
    const auto &index = context.analyses.get<ProgramIndex>(program);
    auto result =
        injectComm(program, index, options.order, context.diags,
                   context.sources, options.latency, options.prefetch);
    if (!result)
      return PassResult::Failed;
    program = std::move(*result);
    return PassResult::Changed;
  }

private:
  InjectCommOptions options;
};

constexpr PassOption<InjectCommOptions> optionTable[] = {
    {{"order", orderNames + 1, "where messages are placed"},
     [](InjectCommOptions &options, llvm::StringRef value) {
       auto order = findCommOrder(value);
       options.order = order.value_or(options.order);
       return order.has_value();
     }},
    {{"latency", "TIME", "of a message, for planning; else the model's"},
     [](InjectCommOptions &options, llvm::StringRef value) {
       options.latency = cost::parse(value);
       return options.latency.has_value();
     }},
    {{"prefetch", "N",
      "receives of an edge that may be posted ahead of their readers"},
     [](InjectCommOptions &options, llvm::StringRef value) {
       uint32_t bound = 0;
       if (value.getAsInteger(10, bound) || bound == 0)
         return false;
       options.prefetch = bound;
       return true;
     }},
};

} // namespace

PassFactory ppcc::injectComm() {
  return passFactory<InjectComm, InjectCommOptions>(optionTable);
}
