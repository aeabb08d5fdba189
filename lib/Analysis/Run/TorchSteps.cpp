// Walks each rank backwards, so that the stages it works on next are known.
#include "ppcc/Analysis/Run/TorchSteps.h"

#include "llvm/ADT/SmallSet.h"

using namespace ppcc;

/// PyTorch's `max_active_stages`.
static constexpr size_t maxActiveStages = 3;

std::optional<TorchVersion> ppcc::parseTorchVersion(StringRef text) {
  TorchVersion version;
  if (text.consumeInteger(10, version.major) || !text.consume_front(".") ||
      text.consumeInteger(10, version.minor))
    return std::nullopt;
  if (!text.empty() && llvm::isAlnum(text.front()))
    return std::nullopt;
  return version;
}

StringRef ppcc::torchStepName(TorchStep::Kind kind) {
  static constexpr StringRef names[] = {"UNSHARD", "RESHARD", "REDUCE_GRAD",
                                        "WAIT_REDUCE_GRAD"};
  return names[kind];
}

namespace {

using Stages = SmallVector<StageId, 4>;

struct StepPlanner {
  const Program &program;
  RankId rank;
  const TorchTarget &target;

  std::vector<TorchStep> plan() {
    std::vector<RowRange> items;
    for (RowRange item : program.items(rank))
      if (program.kindOf(item.from).isCompute())
        items.push_back(item);
    ActionId after = program.end(rank);
    Stages windowAfter;
    for (RowRange item : llvm::reverse(items)) {
      Stages window = windowFrom(item);
      move(window, windowAfter, after);
      reduce(item, after);
      windowAfter = std::move(window);
      after = item.from;
    }
    move({}, windowAfter, after);
    std::reverse(steps.begin(), steps.end());
    return std::move(steps);
  }

  /// A stage, and the item, counted from the rank's end, that uses it next.
  struct NextUse {
    StageId stage;
    uint32_t item;
  };

  /// The stages of an item as PyTorch lists them: in a group forward first.
  Stages stagesOf(RowRange item) const {
    Stages stages;
    for (uint8_t wanted : {uint8_t(slot::Output), uint8_t(0)})
      for (ActionId row : item)
        if ((program.kindOf(row).defines & slot::Output) == wanted)
          stages.push_back(program[row].stage);
    return stages;
  }

  /// The stages that are gathered when an item begins: those that it and the
  /// next items use, until there are enough; groups are not cut.
  Stages windowFrom(RowRange rows) {
    ++item;
    Stages stages = stagesOf(rows);
    for (StageId stage : llvm::reverse(stages)) {
      llvm::erase_if(uses,
                     [&](const NextUse &use) { return use.stage == stage; });
      uses.insert(uses.begin(), {stage, item});
    }
    Stages window;
    uint32_t last = 0;
    for (const NextUse &use : uses) {
      if (window.size() >= maxActiveStages && use.item != last)
        break;
      window.push_back(use.stage);
      last = use.item;
    }
    return window;
  }

  /// What changes one window into the next.
  void move(ArrayRef<StageId> from, ArrayRef<StageId> to, ActionId before) {
    if (!target.fsdp)
      return;
    addMissing(TorchStep::Unshard, to, from, before);
    addMissing(TorchStep::Reshard, from, to, before);
  }

  void addMissing(TorchStep::Kind kind, ArrayRef<StageId> wanted,
                  ArrayRef<StageId> present, ActionId before) {
    for (StageId stage : llvm::reverse(wanted))
      if (!llvm::is_contained(present, stage))
        steps.push_back({kind, stage, before});
  }

  void reduce(RowRange item, ActionId before) {
    if (!target.reduces())
      return;
    for (ActionId row : llvm::reverse(item)) {
      StageId stage = program[row].stage;
      if (!(program.kindOf(row).defines & slot::WeightGrad) ||
          !reduced.insert(stage.value).second)
        continue;
      if (target.waits())
        steps.push_back({TorchStep::WaitReduceGrad, stage, before});
      steps.push_back({TorchStep::ReduceGrad, stage, before});
    }
  }

  uint32_t item = 0;
  SmallVector<NextUse> uses{};            ///< The soonest first.
  llvm::SmallSet<uint32_t, 16> reduced{}; ///< Stages whose reduction is placed.
  std::vector<TorchStep> steps{};         ///< The last first.
};

} // namespace

std::vector<TorchStep> ppcc::torchSteps(const Program &program, RankId rank,
                                        const TorchTarget &target) {
  return StepPlanner{program, rank, target}.plan();
}
