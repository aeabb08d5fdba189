// Which stages compute their activations again.
#include "Task.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace ppcc;
using namespace ppcc::synthesis;

using enum Workload::Part;

namespace {

/// A choice of stages with what a quick search makes of it.
struct Choice {
  llvm::BitVector stages;
  std::optional<Time> value; ///< Nothing where ranks have no room.

  bool isBetter(const Choice &other) const {
    return value && (!other.value || *value < *other.value);
  }
};

class RecomputeSearch {
public:
  RecomputeSearch(Task &task, const Workload &load) : task(task), load(load) {}

  /// Of those that recompute what is held longest, and of small changes to the
  /// best of them.
  llvm::BitVector run() {
    uint32_t count = load.stages.size();
    Choice best = judge(llvm::BitVector(count));
    auto offer = [&](llvm::BitVector stages) {
      Choice other = judge(std::move(stages));
      bool isBetter = other.isBetter(best);
      if (isBetter)
        best = std::move(other);
      return isBetter;
    };
    llvm::BitVector prefix(count);
    for (uint32_t stage : byAmount())
      offer(prefix.set(stage));
    for (bool goesOn = true; goesOn && tries < mostTries;) {
      goesOn = false;
      for (uint32_t stage = 0; stage != count && tries < mostTries; ++stage) {
        llvm::BitVector stages = best.stages;
        goesOn |= offer(stages.flip(stage));
      }
    }
    return best.stages;
  }

private:
  static constexpr unsigned mostTries = 500, turnsEach = 8;

  /// The stages, that with the most memory and time to its gradient first.
  std::vector<uint32_t> byAmount() const {
    Problem problem(load, task.asked.objective);
    std::vector<uint32_t> stages(load.stages.size());
    std::iota(stages.begin(), stages.end(), 0);
    llvm::stable_sort(stages, [&](uint32_t a, uint32_t b) {
      auto held = [&](uint32_t s) {
        return decimal::Sum(load.stages[s].heldBehindF()) * problem.away[s];
      };
      return held(a) > held(b);
    });
    return stages;
  }

  Choice judge(llvm::BitVector stages) {
    ++tries;
    Choice choice{stages, std::nullopt};
    Instance instance(task.program, task.asked, &stages);
    const Problem &problem = instance.problem;
    if (!problem.hasRoom())
      return choice;
    SearchOptions options;
    options.stop = task.asked.stop;
    options.budget = uint64_t(problem.numActions) * turnsEach;
    options.refines = false;
    Found found = search(problem, {}, options);
    task.actions += found.actions;
    task.actions += found.actions;
    if (!found.order.empty())
      choice.value = found.value;
    return choice;
  }

  Task &task;
  const Workload &load;
  unsigned tries = 0;
};

/// What no choice is better than: of the choices of each rank the least, as if
/// the others recomputed in no time.
ResourceBound boundOf(const Workload &kept, const Workload &again,
                      Objective objective) {
  constexpr size_t mostChoices = 6;
  Workload free = again;
  for (Workload::Stage &stage : free.stages) {
    stage.time[I] -= stage.again;
    stage.work[I] -= stage.again;
    stage.sum[I] -= stage.again * stage.microbatches;
  }
  ResourceBound bound;
  for (RankId rank : firstIds<RankId>(free.ofRank.size())) {
    llvm::ArrayRef<uint32_t> own = free.ofRank[rank.value];
    if (own.empty())
      continue;
    std::optional<ResourceBound> least;
    auto offer = [&](const Workload &load) {
      ResourceBound one = resourceBoundOf(load, rank, objective);
      if (!least || one.time < least->time)
        least = one;
    };
    if (own.size() > mostChoices)
      offer(free);
    else
      for (uint32_t choice = 0; choice != 1u << own.size(); ++choice) {
        Workload load = free;
        for (size_t i = 0; i != own.size(); ++i)
          load.stages[own[i]] =
              (choice >> i & 1 ? again : kept).stages[own[i]];
        offer(load);
      }
    if (least->time > bound.time)
      bound = *least;
  }
  return bound;
}

} // namespace

bool synthesis::chooseRecomputed(Task &task) {
  if (task.program.pipes().size() > 1)
    return task.refuse("of several pipes it cannot choose what is recomputed");
  if (!restoring(task.program))
    return task.refuse(
        "it has no action that restores F; say `with recompute;`");
  uint32_t count = task.program.pipes().front().numStages();
  task.recomputed.emplace(count, true);
  auto all = task.instance();
  if (!all) // Not even so is there room.
    return false;
  llvm::BitVector none(count);
  Instance kept(task.program, task.asked, &none);
  task.bound = boundOf(kept.load, all->load, task.asked.objective);
  task.recomputed = RecomputeSearch(task, kept.load).run();
  return true;
}
