#include "Evidence.h"

#include "Fit.h"
#include "ppcc/Analysis/Report/MemoryCurve.h"
#include "ppcc/Analysis/Report/PeakUsage.h"

using namespace ppcc;
using family::Family;
using proof::Affine;

std::vector<std::string> ppcc::bottleneckOf(const proof::Template &program,
                                            const Program &second,
                                            const Simulation &run) {
  std::vector<Origin> origins = originsOf(program, 2);
  std::vector<ActionId> path = criticalPath(run);
  std::map<std::pair<uint32_t, uint32_t>, size_t> seen;
  for (size_t i = 0; i != path.size(); ++i) {
    const Origin &origin = origins[path[i].value];
    if (program.ranks[origin.rank][origin.row].loop == proof::noLoop)
      continue;
    auto [known, isNew] = seen.try_emplace({origin.rank, origin.row}, i);
    if (isNew)
      continue;
    std::vector<std::string> bottleneck;
    for (size_t k = known->second; k != i; ++k) {
      Action action = second[path[k]];
      bottleneck.push_back(
          fmt::format("rank {} {}{}", second.rankOf(path[k]).value,
                      action.stage.value, second.kindOf(action).mnemonic));
    }
    for (size_t period = 1; period != bottleneck.size(); ++period)
      if (bottleneck.size() % period == 0 &&
          std::equal(bottleneck.begin() + period, bottleneck.end(),
                     bottleneck.begin())) {
        bottleneck.resize(period);
        break;
      }
    return bottleneck;
  }
  return {};
}

/// A value, unless it is too large.
template <class Get> static auto unlessOverflow(Get get) {
  std::optional<decltype(get())> result;
  try {
    result.emplace(get());
  } catch (const std::overflow_error &) {
  }
  return result;
}

/// What a message from a stage to another holds, where somebody says it, and it
/// is the same for all microbatches.
static std::optional<Amount> bytesOf(const Program &program, PipeId pipe,
                                     StageId from, StageId to) {
  const CostModel &costs = program.costs();
  if (costs.has({Cost::Scale, Cost::ScaleBytes}))
    return std::nullopt;
  StageId low = std::min(from, to), high = std::max(from, to);
  for (const CostSetting &setting : llvm::reverse(costs.settings))
    if (setting.what == Cost::Bytes && !setting.link &&
        setting.pipe.value_or(pipe) == pipe)
      return setting.values.size() == 1 ? setting.values.front()
                                        : setting.values[low.value];
  for (const EdgeTensors &edge : program.pipe(pipe).tensors)
    if (edge.from == low && edge.to == high)
      if (auto bytes = edge.bytes(/*isGradient=*/to < from);
          bytes && *bytes <= amount::max / amount::unit)
        return *bytes * amount::unit;
  return std::nullopt;
}

/// The messages of all microbatches, of which pipes have so many, and their
/// bytes.
static void countMessages(const Family &family,
                          ArrayRef<proof::MicrobatchRange> pipes,
                          const Program &sample, Metrics &metrics) {
  Affine messages;
  std::optional<Affine> bytes = Affine();
  const Head &head = sample.head();
  forEachEdge(head.pipes, [&](PipeId pipe, StageId from, StageId to) {
    if (head.rankOfStage(pipe, from) == head.rankOfStage(pipe, to) ||
        (!head.hasBackward && to < from))
      return;
    Affine count = pipes[pipe.value].count;
    auto size = bytesOf(sample, pipe, from, to);
    messages = messages + count;
    bytes = size && bytes
                ? unlessOverflow([&] { return *bytes + *size * count; })
                : std::nullopt;
  });
  metrics.messages = formula(family, messages, 1);
  if (bytes)
    metrics.bytes = formula(family, *bytes, amount::unit);
}

Metrics ppcc::metricsOf(const Family &family, const proof::Template &program,
                        const proof::Costs &costs, const Program &sample) {
  Metrics metrics;
  countMessages(family, program.pipes, sample, metrics);
  auto workOf = [&](const proof::RowDurations &times) {
    Affine work;
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
      for (auto [i, row] : llvm::enumerate(program.ranks[rank]))
        if (program.head->kinds[row.kind].occupiesRank() && !row.joined)
          work =
              work + times[rank][i] * Affine{1, row.loop != proof::noLoop, 0};
    return work;
  };
  auto times = unlessOverflow([&] { return rowDurationsOf(program, costs); });
  if (times && *times)
    if (auto work = unlessOverflow([&] { return workOf(**times); }))
      metrics.work = formula(family, *work, cost::unit);
  auto largest = [&](const proof::MemoryDeltas &memoryDeltas,
                     const proof::Costs::Values &staticMemory,
                     int64_t unit) -> std::optional<Formula> {
    std::vector<Affine> peaks;
    for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
      for (Affine peak :
           proof::peaksOf(program.ranks[rank], memoryDeltas[rank]))
        peaks.push_back(peak + (staticMemory.empty() ? 0
                                : staticMemory.size() == 1
                                    ? staticMemory.front()
                                    : staticMemory[rank]));
    auto peak = proof::largestOf(peaks, family.last);
    return peak ? std::optional(formula(family, *peak, unit)) : std::nullopt;
  };
  metrics.activations = largest(proof::activationsOf(program), {}, 1);
  auto memory = unlessOverflow([&]() -> std::optional<Formula> {
    auto memoryDeltas = memoryDeltasOf(program, costs);
    return memoryDeltas
               ? largest(*memoryDeltas, costs.staticMemory, amount::unit)
               : std::nullopt;
  });
  metrics.memory = memory.value_or(std::nullopt);
  return metrics;
}

Metrics ppcc::metricsOf(const Program &program, const TimedRun *timing) {
  Family one{0, 1, 1, 0};
  Metrics metrics;
  std::vector<proof::MicrobatchRange> pipes;
  for (const Pipe &pipe : program.pipes())
    pipes.push_back({pipe.firstMicrobatch, pipe.numMicrobatches});
  countMessages(one, pipes, program, metrics);
  int64_t activations = 0;
  decimal::Sum memory = 0;
  Time work = 0;
  for (RankId rank : program.ranks())
    activations =
        std::max<int64_t>(activations, peakActivations(program, rank));
  metrics.activations = formula(one, activations, 1);
  if (!timing)
    return metrics;
  for (const RankTimes &times :
       rankTimes(program, timing->durations, timing->simulation))
    work += times.busy;
  metrics.work = formula(one, work, cost::unit);
  MemoryCurve curve(program, timing->simulation);
  for (RankId rank : program.ranks())
    memory = std::max(memory, curve.peak(rank).memory);
  if (memory <= INT64_MAX)
    metrics.memory = formula(one, static_cast<int64_t>(memory), amount::unit);
  return metrics;
}
