// Checks that no rank holds more memory than it may.
#include "Report.h"
#include "ppcc/Analysis/MemoryCurve.h"
#include "ppcc/Analysis/WaitCycle.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

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

class MemoryChecker : Judge {
public:
  MemoryChecker(const Program &program, PassContext &context,
                const Simulation &run)
      : Judge(program, context), curve(program, run), model(curve.model()) {}

  void check() {
    checkRest();
    for (RankId rank : program.ranks())
      if (!isSaturated())
        checkRank(rank);
  }

private:
  /// Reports the ranks for which what their stages hold at rest is too much.
  void checkRest() {
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
  void checkRank(RankId rank) {
    Amount limit = *model.limitOf(rank);
    decimal::Sum atRest = model.staticOf(rank);
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
    report<diag::MemoryExceeded>(over->row, rank.value,
                                 amount::format(over->memory),
                                 cost::format(over->at), amount::format(limit))
        .note({}, "`{}` takes the last of it; held are {}{}", cell(over->row),
              heldText(program, curve.held(rank)),
              atRest == 0 ? "" : ", at rest " + amount::format(atRest));
  }

  MemoryCurve curve;
  const MemoryModel &model;
};

const PassOption<Transport> memoryOptions[] = {
    {{"transport", transportNameList(), "what the program runs on"},
     [](Transport &transport, StringRef value) {
       auto found = findTransport(value);
       transport = found.value_or(transport);
       return found.has_value();
     }},
};

} // namespace

Pass ppcc::verifyMemory(Transport transport) {
  return checkPass([=](const Program &program, PassContext &context) {
    if (!program.costs().has({Cost::MemoryLimit}))
      return;
    if (const TimedRun *timed =
            Analyses(program).timedRun(transport, context.diags))
      MemoryChecker(program, context, timed->simulation).check();
  });
}

PassFactory ppcc::verifyMemory() {
  return passFactory<Transport>(memoryOptions, *findTransport("stream"),
                                verifyMemory);
}
