// Runs programs whose times are random.
//
// Random numbers are hashes of what they are for and of the run, not draws in
// some order. Their distribution is the sum of twelve uniform numbers (Irwin
// and Hall), which needs no function that machines round differently.
#include "ppcc/Analysis/Run/Jitter.h"

#include "ppcc/Analysis/Analyses.h"

using namespace ppcc;

Jitter::Jitter(const Program &program)
    : stages(program.pipes()), ofKind(program.kinds().size() * stages.size()) {
  for (const CostSetting &setting : program.costs().settings) {
    int64_t value = setting.values.front();
    switch (setting.what) {
    case Cost::Jitter:
      std::ranges::fill(ofKind, value);
      break;
    case Cost::JitterAction:
      broadcast(setting, program,
                MutableArrayRef(ofKind).slice(
                    setting.kind.value * stages.size(), stages.size()));
      break;
    case Cost::JitterMicrobatch:
      microbatch = value;
      break;
    case Cost::JitterRank:
      rank = value;
      break;
    case Cost::JitterMessage:
      message = value;
      break;
    default:
      break;
    }
  }
  any = microbatch != 0 || rank != 0 || message != 0 ||
        llvm::any_of(ofKind, [](int64_t spread) { return spread != 0; });
}

/// Of splitmix64.
static uint64_t mixed(uint64_t value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

Time Jitter::vary(Time time, int64_t spread, uint64_t key) const {
  if (spread == 0 || time == 0)
    return time;
  uint64_t state = mixed(mixed(seed + 1) ^ key);
  int64_t sum = 0; // Of twelve numbers below 2^20.
  for (int draw = 0; draw != 4; ++draw) {
    uint64_t bits = mixed(state += 0x9E3779B97F4A7C15);
    for (int part = 0; part != 3; ++part)
      sum += bits >> (20 * part) & 0xFFFFF;
  }
  __int128 deviation = (__int128(sum - (int64_t(6) << 20)) * spread) >> 20;
  int64_t factor = scaling::unit + int64_t(deviation);
  return scaling::apply(time, std::max(factor, scaling::unit / 20),
                        std::numeric_limits<Time>::max());
}

Time Jitter::ofAction(Time time, const Action &action, RankId onRank) const {
  uint64_t place = uint64_t(action.pipe.value) << 32;
  uint64_t number = mixed(place | action.microbatch);
  size_t stage = stages(action);
  time = vary(coarse(time), ofKind[action.kind.value * stages.size() + stage],
              mixed(place | action.stage.value) + number + action.kind.value);
  time = vary(time, microbatch, number);
  return vary(time, rank, ~uint64_t(onRank.value));
}

Time Jitter::ofMessage(Time time, PipeId pipe, StageId from, StageId to,
                       uint32_t microbatch) const {
  uint64_t place = uint64_t(pipe.value) << 32;
  return vary(coarse(time), message,
              mixed(place | from.value) + mixed(mixed(place | to.value)) +
                  mixed(place | microbatch));
}

std::optional<Makespans> ppcc::makespansOf(const Program &program,
                                           const Transport &transport,
                                           uint64_t first) {
  Jitter jitter(program);
  if (!jitter.isAny())
    return std::nullopt;
  Analyses analyses(program);
  const Durations &durations = analyses.durations();
  bool hasMessages = program.firstMessage().has_value();
  constexpr int bits = 10;
  static_assert(1 << bits > Jitter::maxFactor);
  bool isLong = !durations.fits(program, program.size(), Jitter::maxFactor);
  jitter.coarsen(isLong ? bits : 0);
  constexpr size_t maxRows = 20'000'000;
  Makespans result;
  result.runs = std::clamp<size_t>(maxRows / (program.size() + 1), 10, 100);
  std::vector<decimal::Sum> times; // One alone may be longer than a Time.
  decimal::Sum sum = 0;
  for (unsigned run = 0; run != result.runs; ++run) {
    jitter.begin(first + run);
    auto one = hasMessages
                   ? simulate(program, analyses.index(), analyses.messages(),
                              durations, transport, &jitter)
                   : simulate(program, analyses.index(), durations, &jitter);
    if (!one)
      return std::nullopt;
    times.push_back(decimal::Sum(one->makespan) << (isLong ? bits : 0));
    sum += times.back();
  }
  llvm::sort(times);
  auto held = [](decimal::Sum time) {
    return Time(std::min<decimal::Sum>(time, std::numeric_limits<Time>::max()));
  };
  result.mean = held(sum / int64_t(result.runs));
  result.high = held(times[(times.size() * 95 + 99) / 100 - 1]);
  return result;
}
