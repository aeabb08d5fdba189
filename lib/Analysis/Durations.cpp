// How long each action of a program takes.
#include "ppcc/Analysis/Durations.h"

#include <algorithm>

using namespace ppcc;

static constexpr Time untold = -1;

Durations::Durations(const Program &program)
    : overlap(program.costs.overlap),
      latency(program.costs.latency.value_or(0)) {
  size_t stages = 0;
  for (const Pipe &pipe : program.pipes) {
    firstStage.push_back(stages);
    stages += pipe.numStages();
  }
  for (const CostSetting &setting : program.costs.actions)
    if (setting.pipe)
      stride = std::max<size_t>(stages, 1);

  llvm::ArrayRef<KindInfo> kinds = program.kinds.rows();
  table.assign(kinds.size() * stride, untold);
  for (const CostSetting &setting : program.costs.actions)
    apply(setting, program);
  auto row = [&](KindId kind) { return table.begin() + kind.value * stride; };
  for (bool single : {true, false})
    for (uint32_t kind = 0; kind != kinds.size(); ++kind) {
      const KindInfo &info = kinds[kind];
      if (single != (info.defines == info.mainSlot()))
        continue;
      for (size_t i = 0; i != stride; ++i) {
        Time &time = row(KindId(kind))[i];
        if (time != untold)
          continue;
        time = 0;
        for (unsigned rest = info.isCompute() ? info.defines : 0; rest;
             rest &= rest - 1) {
          auto part = program.kinds.find(KindClass::Compute, rest & -rest);
          time += single || !part ? cost::unit : row(*part)[i];
        }
      }
    }
}

void Durations::apply(const CostSetting &setting, const Program &program) {
  auto row = table.begin() + setting.kind.value * stride;
  if (!setting.pipe) {
    std::fill_n(row, stride, setting.times.front());
    return;
  }
  row += firstStage[setting.pipe->value];
  if (setting.times.size() == 1)
    std::fill_n(row, program.pipes[setting.pipe->value].numStages(),
                setting.times.front());
  else
    std::copy(setting.times.begin(), setting.times.end(), row);
}

Time Durations::of(const Program &program, ActionId begin, ActionId end) const {
  Time sum = 0;
  uint32_t actions = 0;
  for (; begin != end; ++begin.value) {
    Action action = program[begin];
    sum += of(action);
    actions += program.kinds[action.kind].isCompute();
  }
  return overlap && actions > 1 ? *overlap : sum;
}

bool Durations::fits(const Program &program, uint64_t messages) const {
  __int128 sum = __int128(latency) * messages;
  for (uint32_t row = 0; row != program.size(); ++row)
    sum += of(program[ActionId(row)]) + (overlap ? *overlap : 0);
  return sum <= maxSum;
}
