// Stages that compute nothing, and times.
#pragma once

#include "ppcc/Runtime/Engine.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace bench {

namespace rt = ppcc::rt;
using Value = std::vector<double>;

/// Hands values on and computes nothing. They hold nothing either, so that no
/// time goes into memory.
struct NoopStage : rt::StageHooks {
  using Value = bench::Value;

  Value forward(const rt::ActionContext &, const rt::Inputs<Value> &inputs) {
    ++calls;
    return inputs.empty() ? Value() : inputs.take(0);
  }
  Value backward(const rt::ActionContext &, Value *gradient) {
    ++calls;
    return gradient ? std::move(*gradient) : Value();
  }

  size_t calls = 0;
};

/// Measures time, and the time of all cores of this process.
class Stopwatch {
public:
  void stop() {
    using Seconds = std::chrono::duration<double>;
    wall = Seconds(std::chrono::steady_clock::now() - start).count();
    cpu = double(std::clock() - cpuStart) / CLOCKS_PER_SEC;
  }
  /// Of what was stopped.
  double seconds() const { return wall; }
  /// Prints both, by action; stops what runs.
  void report(const char *what, uint64_t actions) {
    if (wall == 0)
      stop();
    std::printf("%-24s %8.3f s %8.1f ns/action, %8.1f ns of the processor\n",
                what, wall, wall / double(actions) * 1e9,
                cpu / double(actions) * 1e9);
  }

private:
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  std::clock_t cpuStart = std::clock();
  double wall = 0, cpu = 0;
};

inline double median(std::vector<double> values) {
  auto middle = values.begin() + ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

inline uint64_t actionsOf(const rt::Program &program) {
  uint64_t actions = 0;
  for (const rt::RankProgram &rank : program.ranks)
    for (const rt::Segment &segment : rank.segments)
      actions += uint64_t(segment.rows) * segment.count;
  return actions;
}

} // namespace bench
