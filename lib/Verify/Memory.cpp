// Checks that no rank holds more memory than it may.
#include "Report.h"
#include "ppcc/Analysis/MemoryCurve.h"
#include "ppcc/Analysis/WaitCycle.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

struct MemoryOptions {
  Transport transport{*findTransport("stream")};
};

/// `3 by stage 1 (microbatches 4 to 6)` for each stage.
std::string heldText(const Program &program, ArrayRef<HeldMemory> held) {
  constexpr size_t most = 8;
  std::vector<std::string> texts;
  for (const HeldMemory &part : held.take_front(most)) {
    std::string pipe = ofPipe(program, part.pipe);
    std::string microbatches =
        part.count == 1 ? fmt::format("microbatch {}", part.first)
                        : fmt::format("{} microbatches, {} to {}", part.count,
                                      part.first, part.last);
    texts.push_back(fmt::format("{} by stage {}{} ({})",
                                amount::format(part.amount), part.stage.value,
                                pipe, microbatches));
  }
  if (held.size() > most)
    texts.push_back(fmt::format("and {} more stages", held.size() - most));
  return llvm::join(texts, ", ");
}

class VerifyMemory final : public CheckPass {
public:
  explicit VerifyMemory(MemoryOptions options) : options(std::move(options)) {}

  void check(const Program &program, PassContext &context) const override {
    if (!program.costs().has({Cost::MemoryLimit}))
      return;
    const TimedRun *timed =
        Analyses(program).timedRun(options.transport, context.diags);
    if (!timed)
      return;
    MemoryCurve curve(program, timed->simulation);
    checkRest(program, curve.model(), context);
    for (uint32_t rank = 0;
         rank != program.ranksBegun() && !context.diags.saturated(); ++rank)
      checkRank(program, RankId(rank), curve, context);
  }

private:
  /// Reports the ranks for which what their stages hold at rest is too much.
  static void checkRest(const Program &program, const MemoryModel &model,
                        PassContext &context) {
    std::vector<RankId> over;
    for (RankId rank : program.ranks())
      if (model.staticOf(rank) > *model.limitOf(rank))
        over.push_back(rank);
    if (over.empty())
      return;
    auto builder = context.diags.report<diag::RestExceeded>(
        Place(program.name()), over.front().value,
        amount::format(model.staticOf(over.front())),
        amount::format(*model.limitOf(over.front())));
    if (over.size() > 1)
      builder.note({}, "and so {} {}",
                   over.size() == 2 ? "does rank" : "do ranks",
                   rankList(ArrayRef(over).drop_front()));
  }

  /// Reports the first moment in which the rank holds more than it may.
  static void checkRank(const Program &program, RankId rank, MemoryCurve &curve,
                        PassContext &context) {
    Amount limit = *curve.model().limitOf(rank);
    decimal::Sum atRest = curve.model().staticOf(rank);
    if (atRest > limit)
      return; // It was reported.
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

const PassOption<MemoryOptions> memoryOptions[] = {
    {{"transport", transportNameList(), "what the program runs on"},
     [](MemoryOptions &options, StringRef value) {
       auto transport = findTransport(value);
       options.transport = transport.value_or(options.transport);
       return transport.has_value();
     }},
};

} // namespace

PassFactory ppcc::verifyMemory() {
  return passFactory<VerifyMemory, MemoryOptions>(memoryOptions);
}

std::unique_ptr<Pass> ppcc::verifyMemory(Transport transport) {
  return std::make_unique<VerifyMemory>(MemoryOptions{std::move(transport)});
}
