// Checks that no rank holds more memory than it may.
#include "ProgramCheck.h"
#include "ppcc/Analysis/Report/MemoryCurve.h"
#include "ppcc/Analysis/Run/EventGraph.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

/// `3 by stage 1 (microbatches 4 to 6)` for each stage.
std::string heldText(const Program &program, ArrayRef<HeldMemory> held) {
  constexpr size_t maxShown = 8;
  std::vector<std::string> texts;
  for (const HeldMemory &part : held.take_front(maxShown)) {
    std::string pipe = ofPipe(program, part.pipe);
    std::string microbatches =
        part.count == 1 ? fmt::format("microbatch {}", part.first)
                        : fmt::format("{} microbatches, {} to {}", part.count,
                                      part.first, part.last);
    texts.push_back(fmt::format("{} by stage {}{} ({})",
                                program.units().memory(part.amount),
                                part.stage.value, pipe, microbatches));
  }
  if (held.size() > maxShown)
    texts.push_back(fmt::format("and {} more stages", held.size() - maxShown));
  return llvm::join(texts, ", ");
}

/// Checks what actions restore against what the others take that do not keep
/// it.
struct RestoreChecker : ProgramCheck {
  /// Reports each kind and stage once.
  void check() {
    std::set<std::tuple<KindId, PipeId, StageId>> reported;
    for (ActionId row : program.rows()) {
      Action action = program[row], whole = action;
      auto restored = program.kindOf(row).restores;
      if (!restored || reported.count({action.kind, action.pipe, action.stage}))
        continue;
      whole.kind = *restored;
      if (compare(row, whole, model.of(action), model.of(whole)))
        reported.insert({action.kind, action.pipe, action.stage});
    }
  }

  /// Whether something was reported.
  bool compare(ActionId row, const Action &whole, Amount taken, Amount all) {
    std::string has = program.units().memory(all);
    if (taken > std::max<Amount>(all, 0))
      report<diag::RestoresTooMuch>(
          row, cell(row), program.units().memory(taken), cell(whole), has);
    else if (taken <= 0 && all > 0)
      report<diag::RestoresNothing>(row, cell(row), has, cell(whole));
    else if (taken == all && all > 0 && model.areAmountsGiven())
      report<diag::RestoresAll>(row, cell(row), has, cell(whole));
    else
      return false;
    return true;
  }

  MemoryModel model{program};
};

struct MemoryChecker : ProgramCheck {
  const Simulation &run;

  void check() {
    checkStaticMemory();
    for (RankId rank : program.ranks())
      if (!isSaturated())
        checkRank(rank);
  }

  /// As much as a limit, when rounded, is more by an amount that is shown.
  std::string amountAbove(decimal::Sum held, Amount limit) const {
    const Units &units = program.units();
    std::string text = units.memory(held);
    return text != units.memory(limit)
               ? text
               : text + " and " + units.memory(held - limit);
  }

  /// Reports the ranks for which what their stages hold at rest is too much.
  void checkStaticMemory() {
    std::vector<RankId> over;
    for (RankId rank : program.ranks())
      if (model.staticOf(rank) > *model.limitOf(rank))
        over.push_back(rank);
    if (over.empty())
      return;
    auto builder = context.diags.report<diag::StaticMemoryExceeded>(
        Location(program.name()), over.front().value,
        amountAbove(model.staticOf(over.front()), *model.limitOf(over.front())),
        program.units().memory(*model.limitOf(over.front())));
    if (over.size() > 1)
      builder.note({}, "and so {} {}",
                   over.size() == 2 ? "does rank" : "do ranks",
                   rankList(ArrayRef(over).drop_front()));
  }

  /// Reports the first moment in which the rank holds more than it may.
  void checkRank(RankId rank) {
    Amount limit = *model.limitOf(rank);
    decimal::Sum staticMemory = model.staticOf(rank);
    if (staticMemory > limit)
      return; // It was reported.
    std::optional<MemoryStep> over;
    curve.walk(rank, [&](const MemoryStep &step) {
      if (step.memory > limit)
        over = step;
      return !over;
    });
    if (!over)
      return;
    report<diag::MemoryExceeded>(
        over->row, rank.value, amountAbove(over->memory, limit),
        program.units().time(over->at), program.units().memory(limit))
        .note({}, "`{}` takes the last of it; held then: {}{}", cell(over->row),
              heldText(program, curve.held(rank)),
              staticMemory == 0
                  ? ""
                  : ", static " + program.units().memory(staticMemory));
  }

  MemoryCurve curve{program, run};
  const MemoryModel &model = curve.model();
};

} // namespace

void ppcc::checkRestored(const Program &program, PassContext &context) {
  if (llvm::any_of(program.kinds().declaredRows(),
                   [](const KindInfo &info) { return bool(info.restores); }))
    RestoreChecker{{program, context}}.check();
}

Pass ppcc::verifyMemory(Transport transport) {
  return checkPass([=](const Program &program, PassContext &context) {
    checkRestored(program, context);
    if (!program.costs().has({Cost::MemoryLimit}))
      return;
    if (const TimedRun *timed =
            Analyses(program).timedRun(transport, context.diags))
      MemoryChecker{{program, context}, timed->simulation}.check();
  });
}
