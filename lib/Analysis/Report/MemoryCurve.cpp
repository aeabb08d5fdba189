// How much memory each rank holds while a program runs.
#include "ppcc/Analysis/Report/MemoryCurve.h"

#include "ppcc/Analysis/Report/PeakUsage.h"

using namespace ppcc;

MemoryModel::MemoryModel(const Program &program)
    : stages(program.pipes()), staticMemory(program.numRanks()),
      scales(program) {
  if (const CostSetting *limit = program.costs().last({Cost::MemoryLimit}))
    limits = limit->values;
  table.resize(program.kinds().size() * stages.size());
  freesRemainderOf.resize(table.size());
  auto row = [&](auto &values, KindId kind) {
    return MutableArrayRef(values).slice(kind.value * stages.size(),
                                         stages.size());
  };
  const CostModel &costs = program.costs();
  amountsGiven = costs.hasMemoryCosts(program.kinds());
  for (KindId kind : program.kinds().ids()) {
    const KindInfo &info = program.kinds()[kind];
    if (info.isCompute() && (info.defines & slot::WeightGrad))
      std::ranges::fill(row(freesRemainderOf, kind), true);
    if (!amountsGiven && info.isCompute() && (info.defines & slot::Output))
      std::ranges::fill(row(table, kind), amount::unit);
  }
  for (const CostSetting &setting : costs.of(Cost::Memory)) {
    broadcast(setting, program, row(table, setting.kind));
    std::ranges::fill(
        stageRange(setting, program, row(freesRemainderOf, setting.kind)),
        false);
  }
  std::vector<Amount> staticOfStage(stages.size());
  for (const CostSetting &setting : costs.of(Cost::StaticMemory))
    broadcast(setting, program, staticOfStage);
  for (PipeId pipe : program.pipeIds())
    for (StageId stage : program.pipe(pipe).stages())
      staticMemory[program.rankOfStage(pipe, stage).value] +=
          staticOfStage[stages(pipe, stage)];
}

std::optional<Amount> MemoryModel::limitOf(RankId rank) const {
  if (limits.empty())
    return std::nullopt;
  return limits.size() == 1 ? limits.front() : limits.at(rank.value);
}

MemoryCurve::MemoryCurve(const Program &program, const Simulation &simulation)
    : program(program), simulation(simulation), costs(program),
      pairOf(program.pipes()), holds(pairOf.size()) {
  hasRestores =
      llvm::any_of(program.kinds().declaredRows(), [](const KindInfo &info) {
        return info.restores.has_value();
      });
}

template <class Visit>
void MemoryCurve::forEachEvent(RankId rank, Visit visit) const {
  std::vector<Event> events;
  bool isSorted = !program.kinds().hasAsync();
  for (RowRange item : program.items(rank))
    for (bool isStart : {true, false})
      for (ActionId row : item) {
        if (!program.kindOf(row).isCompute())
          continue;
        Event event{(isStart ? simulation.starts : simulation.ends)[row.value],
                    isStart, row};
        if (!isSorted)
          events.push_back(event);
        else if (!visit(event))
          return;
      }
  // At one time what ends gives back first, unless it began then too.
  llvm::stable_sort(events, [&](const Event &a, const Event &b) {
    auto begins = [&](const Event &event) {
      return event.isStart || simulation.starts[event.row.value] == event.at;
    };
    return std::pair(a.at, begins(a)) < std::pair(b.at, begins(b));
  });
  for (const Event &event : events)
    if (!visit(event))
      return;
}

/// Notes what is given back early on a rank, since an action will restore it.
void MemoryCurve::recordRestores(RankId rank) {
  restores.clear();
  if (!hasRestores)
    return;
  for (ActionId row : program.rows(rank)) {
    Action action = program[row];
    if (auto kind = program.kindOf(action).restores;
        kind && action.hasMicrobatch())
      restores.try_emplace({kind->value, pairOf(action)},
                           std::max<Amount>(costs.of(action), 0));
  }
}

Amount MemoryCurve::restoredOf(const Action &action) const {
  return hasRestores && action.hasMicrobatch()
             ? restores.lookup({action.kind.value, pairOf(action)})
             : 0;
}

void MemoryCurve::walk(RankId rank,
                       function_ref<bool(const MemoryStep &)> visit) {
  for (ActionId row : program.rows(rank))
    if (Action action = program[row]; action.hasMicrobatch())
      holds[pairOf(action)] = 0;
  recordRestores(rank);
  MemoryStep step;
  step.memory = costs.staticOf(rank);
  auto change = [&](const Event &event, const Action &action,
                    decimal::Sum amount, int activations) {
    if (amount == 0 && activations == 0)
      return true;
    if (action.hasMicrobatch())
      holds[pairOf(action)] += amount;
    step = {event.at, event.row, step.memory + amount,
            step.activations + activations};
    return visit(step);
  };
  forEachEvent(rank, [&](const Event &event) {
    Action action = program[event.row];
    const KindInfo &info = program.kindOf(action);
    Amount taken = takenBy(action, rank);
    if (event.isStart)
      return change(event, action, std::max<Amount>(taken, 0),
                    beginsActivation(info));
    decimal::Sum amount =
        costs.freesRemainder(action)
            ? -holds[pairOf(action)]
            : decimal::Sum(std::min<Amount>(taken, 0)) - restoredOf(action);
    return change(event, action, amount, -int(endsActivation(info)));
  });
}

std::vector<HeldMemory> MemoryCurve::held(RankId rank) const {
  std::map<std::pair<PipeId, StageId>, HeldMemory> stages;
  for (ActionId row : program.rows(rank)) {
    Action action = program[row];
    const KindInfo &info = program.kindOf(action);
    bool comes = takenBy(action, rank) > 0 && program.isPeerSide(action, rank);
    if ((!beginsActivation(info) && !comes) || !action.hasMicrobatch())
      continue;
    decimal::Sum amount = holds[pairOf(action)];
    if (amount == 0)
      continue;
    uint32_t microbatch = action.microbatch;
    HeldMemory one{action.pipe, action.stage, microbatch, microbatch};
    HeldMemory &held =
        stages.try_emplace({action.pipe, action.stage}, one).first->second;
    held.first = std::min(held.first, microbatch);
    held.last = std::max(held.last, microbatch);
    ++held.count;
    held.amount += amount;
  }
  auto values = llvm::make_second_range(stages);
  return {values.begin(), values.end()};
}

std::vector<HeldMemory> MemoryCurve::heldAt(const MemoryPeak &peak,
                                            RankId rank) {
  walk(rank, [&](const MemoryStep &step) {
    return peak.row && step.memory != peak.memory;
  });
  return peak.row ? held(rank) : std::vector<HeldMemory>();
}

MemoryPeak MemoryCurve::peak(RankId rank) {
  MemoryPeak peak;
  peak.memory = peak.last = costs.staticOf(rank);
  walk(rank, [&](const MemoryStep &step) {
    if (step.memory > peak.memory) {
      peak.memory = step.memory;
      peak.at = step.at;
      peak.row = step.row;
    }
    peak.last = step.memory;
    peak.activations = std::max(peak.activations, step.activations);
    return true;
  });
  return peak;
}
