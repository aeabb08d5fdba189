// Stages that compute nothing, and 1F1B written by hand.
#pragma once

#include "ppcc/Runtime/Engine.h"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace bench {

namespace rt = ppcc::rt;
using Value = std::vector<double>;

/// Hands values on and computes nothing. They hold nothing either, so that no
/// time goes into memory.
struct Idle : rt::StageHooks {
  using Value = bench::Value;

  Value forward(const rt::Work &, const rt::Inputs<Value> &inputs) {
    ++calls;
    return inputs.empty() ? Value() : inputs.take(0);
  }
  Value backward(const rt::Work &, Value *gradient) {
    ++calls;
    return gradient ? std::move(*gradient) : Value();
  }

  size_t calls = 0;
};

/// What a rank does in 1F1B, as somebody would write it: the engine's transport
/// and nothing else of it.
template <class Endpoint>
void byHand(uint32_t rank, uint32_t ranks, uint32_t microbatches,
            Endpoint &endpoint) {
  constexpr auto patience = std::chrono::minutes(1);
  bool first = rank == 0, last = rank + 1 == ranks;
  rt::Message<Value> message{};
  auto label = [&](uint8_t slot, uint32_t from, uint32_t to, uint32_t m) {
    return rt::Label{0, slot, uint16_t(from), uint16_t(to), m};
  };
  auto forward = [&](uint32_t m) {
    if (!first) {
      endpoint.postReceive(rank - 1, label(rt::slot::Output, rank - 1, rank, m),
                           0);
      endpoint.receive(rank - 1, message, patience);
    }
    if (!last)
      endpoint.send(rank + 1, {label(rt::slot::Output, rank, rank + 1, m),
                               std::move(message.value)});
  };
  auto backward = [&](uint32_t m) {
    if (!last) {
      endpoint.postReceive(rank + 1,
                           label(rt::slot::InputGrad, rank + 1, rank, m), 0);
      endpoint.receive(rank + 1, message, patience);
    }
    if (!first)
      endpoint.send(rank - 1, {label(rt::slot::InputGrad, rank, rank - 1, m),
                               std::move(message.value)});
  };
  uint32_t warmup = std::min(ranks - 1 - rank, microbatches);
  uint32_t m = 0;
  for (; m != warmup; ++m)
    forward(m);
  for (; m != microbatches; ++m)
    forward(m), backward(m - warmup);
  for (m -= warmup; m != microbatches; ++m)
    backward(m);
}

/// Measures time, and the time of all cores of this process.
class Stopwatch {
public:
  /// Prints both, by action.
  void report(const char *what, uint64_t actions) const {
    using Seconds = std::chrono::duration<double>;
    double wall = Seconds(std::chrono::steady_clock::now() - start).count();
    double cpu = double(std::clock() - cpuStart) / CLOCKS_PER_SEC;
    std::printf("%-24s %8.3f s %8.1f ns/action, %8.1f ns of the processor\n",
                what, wall, wall / double(actions) * 1e9,
                cpu / double(actions) * 1e9);
  }

private:
  std::chrono::steady_clock::time_point start =
      std::chrono::steady_clock::now();
  std::clock_t cpuStart = std::clock();
};

inline uint64_t actionsOf(const rt::Program &program) {
  uint64_t actions = 0;
  for (const rt::RankProgram &rank : program.ranks)
    for (const rt::Segment &segment : rank.segments)
      actions += uint64_t(segment.rows) * segment.count;
  return actions;
}

} // namespace bench
