#include "Findings.h"

#include "ppcc/Analysis/Analyses.h"

using namespace ppcc;

static IdleTime idleTime(const Program &program, const TimedRun &timed,
                         const Report &report) {
  IdleTime idle;
  Bubbles bubbles(program, timed);
  for (RankId rank : program.ranks())
    bubbles.walk(rank, [&](const Bubble &bubble) {
      bool isRamp = bubble.cause == BubbleCause::End ||
                    bubble.begin < report.ranks[rank.value].times.begin;
      Time &sum = isRamp                                       ? idle.ramp
                  : bubble.cause == BubbleCause::Rank          ? idle.dependence
                  : bubble.cause == BubbleCause::Communication ? idle.messages
                                                               : idle.lanes;
      sum += bubble.end - bubble.begin;
    });
  return idle;
}

/// Whether two rows are the same work on other microbatches.
static bool isSameWork(const Action &a, const Action &b) {
  return a.kind == b.kind && a.pipe == b.pipe && a.stage == b.stage;
}

/// Looks in the middle of the critical path for two turns that are alike.
static std::optional<SteadyStateCycle>
findSteadyStateCycle(const Program &program, const Simulation &times) {
  std::vector<ActionId> path = criticalPath(times);
  std::vector<size_t> compute; // Where they stand in the path.
  for (auto [i, row] : llvm::enumerate(path))
    if (program.kindOf(program[row]).isCompute() &&
        times.ends[row.value] > times.starts[row.value])
      compute.push_back(i);
  auto rowAt = [&](size_t i) { return path[compute[i]]; };
  auto action = [&](size_t i) { return program[rowAt(i)]; };
  constexpr size_t maxActions = 256;
  size_t last = compute.size() / 2 + 1;
  for (size_t length = 1;
       length <= maxActions && 2 * length <= last && last < compute.size();
       ++length) {
    uint32_t step = action(last).microbatch - action(last - length).microbatch;
    bool repeats = step - 1 < UINT32_MAX / 2;
    for (size_t i = 0; repeats && i != length; ++i)
      repeats = isSameWork(action(last - i), action(last - i - length)) &&
                action(last - i).microbatch ==
                    action(last - i - length).microbatch + step;
    if (!repeats)
      continue;
    SteadyStateCycle steadyState{{path.begin() + compute[last - length] + 1,
                                  path.begin() + compute[last] + 1},
                                 step};
    steadyState.period =
        times.ends[rowAt(last).value] - times.ends[rowAt(last - length).value];
    steadyState.messages = steadyState.period;
    for (size_t i = last - length + 1; i <= last; ++i)
      steadyState.messages -=
          times.ends[rowAt(i).value] - times.starts[rowAt(i).value];
    if (steadyState.messages < 0) // Groups whose members give before they end.
      steadyState.messages = 0;
    return steadyState;
  }
  return std::nullopt;
}

static std::optional<Time> withoutMessages(const Program &program,
                                           const Transport &transport) {
  if (!program.costs().hasMessageTimes())
    return std::nullopt;
  Program free = program.withRows(program.allRows());
  llvm::erase_if(
      free.editHead().costs.settings, [](const CostSetting &setting) {
        return setting.what == Cost::Latency || setting.what == Cost::Bandwidth;
      });
  DiagnosticEngine ignored([](const Diagnostic &) {});
  const TimedRun *timed = Analyses(free).timedRun(transport, ignored);
  return timed ? std::optional(timed->simulation.makespan) : std::nullopt;
}

static MemoryCost memoryCost(const Program &program, const TimedRun &timed,
                             const ResourceBound &bound) {
  MemoryCost cost;
  Workload load = Workload::of(program, timed.durations);
  if (llvm::none_of(load.memoryBudget, [](const auto &memoryBudget) {
        return memoryBudget.has_value();
      }))
    return cost;
  cost.rank = bound.rank;
  if (auto &memoryBudget = load.memoryBudget[bound.rank.value]) {
    for (uint32_t stage : load.ofRank[bound.rank.value])
      cost.activation =
          std::max(cost.activation, load.stages[stage].heldAfterF());
    *memoryBudget += cost.activation;
    cost.oneMore = bound.time - resourceBound(load).time;
  }
  std::fill(load.memoryBudget.begin(), load.memoryBudget.end(), std::nullopt);
  cost.limits = bound.time - resourceBound(load).time;
  return cost;
}

Findings ppcc::findingsOf(const Program &program, const TimedRun &timed,
                          const Report &report, const Transport &transport) {
  return {idleTime(program, timed, report),
          findSteadyStateCycle(program, timed.simulation),
          withoutMessages(program, transport), makespansOf(program, transport),
          memoryCost(program, timed, report.resources)};
}
