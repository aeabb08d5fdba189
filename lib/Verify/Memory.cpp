// Checks that no rank holds more memory than it may.
#include "Report.h"
#include "ppcc/Analysis/MemoryCurve.h"
#include "ppcc/Analysis/Timing.h"
#include "ppcc/Verify/Passes.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace ppcc;

namespace {

struct MemoryOptions {
  Transport transport{*findTransport("stream")};
};

/// `3 by stage 1 (microbatches 4 to 6)` for each stage.
std::string heldText(const Program &program, llvm::ArrayRef<HeldMemory> held) {
  struct Microbatches {
    uint32_t first = UINT32_MAX, last = 0;
    decimal::Sum amount = 0;
  };
  std::map<std::pair<PipeId, StageId>, Microbatches> stages;
  for (const HeldMemory &part : held) {
    Microbatches &all = stages[{part.pipe, part.stage}];
    all.first = std::min(all.first, part.microbatch);
    all.last = std::max(all.last, part.microbatch);
    all.amount += part.amount;
  }
  constexpr size_t most = 8;
  std::vector<std::string> texts;
  for (const auto &[stage, all] : stages) {
    if (texts.size() == most) {
      texts.push_back(fmt::format("and {} more stages", stages.size() - most));
      break;
    }
    std::string pipe = program.pipes.size() == 1
                           ? ""
                           : fmt::format(" of pipe `{}`",
                                         program.pipes[stage.first.value].name);
    std::string microbatches =
        all.first == all.last
            ? fmt::format("microbatch {}", all.first)
            : fmt::format("microbatches {} to {}", all.first, all.last);
    texts.push_back(fmt::format("{} by stage {}{} ({})",
                                amount::format(all.amount), stage.second.value,
                                pipe, microbatches));
  }
  return llvm::join(texts, ", ");
}

class VerifyMemory final : public CheckPass {
public:
  explicit VerifyMemory(MemoryOptions options) : options(std::move(options)) {}

  void check(const Program &program, PassContext &context) const override {
    if (program.costs.memoryLimits.empty())
      return;
    auto timing = timeProgram(program, options.transport, context.diags);
    if (!timing)
      return;
    MemoryCurve curve(program, timing->simulation);
    for (uint32_t rank = 0;
         rank != program.ranksBegun() && !context.diags.saturated(); ++rank)
      checkRank(program, RankId(rank), curve, context);
  }

private:
  /// Reports the first moment in which the rank holds more than it may.
  static void checkRank(const Program &program, RankId rank, MemoryCurve &curve,
                        PassContext &context) {
    Amount limit = *curve.model().limitOf(rank);
    decimal::Sum atRest = curve.model().staticOf(rank);
    if (atRest > limit) {
      context.diags.report<diag::MemoryExceeded>(
          Place(program.name), rank.value, amount::format(atRest), "0",
          amount::format(limit));
      return;
    }
    std::optional<MemoryStep> over;
    curve.walk(rank, [&](const MemoryStep &step) {
      if (step.memory > limit)
        over = step;
      return !over;
    });
    if (!over)
      return;
    auto builder = reportAt<diag::MemoryExceeded>(
        program, context, over->row, rank.value, amount::format(over->memory),
        cost::format(over->at), amount::format(limit));
    builder.note({}, "`{}` takes the last of it; held are {}{}",
                 cell(program, over->row), heldText(program, curve.held(rank)),
                 atRest == 0 ? "" : ", at rest " + amount::format(atRest));
  }

  MemoryOptions options;
};

const PassOption<MemoryOptions> optionTable[] = {
    {{"transport", transportNameList(), "what the program runs on"},
     [](MemoryOptions &options, llvm::StringRef value) {
       auto transport = findTransport(value);
       options.transport = transport.value_or(options.transport);
       return transport.has_value();
     }},
};

} // namespace

PassFactory ppcc::verifyMemory() {
  return passFactory<VerifyMemory, MemoryOptions>(optionTable);
}
