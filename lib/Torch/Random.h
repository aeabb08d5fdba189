// Random numbers that modules draw, once more.
#pragma once

#include "ppcc/Torch/Stage.h"

#include <ATen/Context.h>

#include <mutex>

namespace ppcc::rt {

/// What modules on a device draw random numbers from: the host's generator, and
/// that of the device if it is another one. Their states lie on the host.
class Generators {
public:
  explicit Generators(at::Device device) {
    for (at::Device one : {at::Device(at::kCPU), device})
      if (all.empty() || one != at::Device(at::kCPU))
        all.push_back(at::globalContext().defaultGenerator(one));
  }
  Tensors states() const {
    Tensors result;
    for (const at::Generator &generator : all)
      result.push_back(generator.get_state());
    return result;
  }
  void setStates(const Tensors &states) {
    for (size_t i = 0; i != all.size(); ++i)
      all[i].set_state(states[i]);
  }
  void seed(uint64_t seed) {
    for (at::Generator &generator : all)
      generator.set_current_seed(seed);
  }
  bool match(const Tensors &states) const {
    Tensors now = this->states();
    return std::equal(now.begin(), now.end(), states.begin(),
                      [](const auto &a, const auto &b) { return a.equal(b); });
  }

private:
  std::vector<at::Generator> all;
};

/// Random numbers that depend on the seed alone, while it lives. LibTorch's
/// modules draw from one generator a process and device, so one at a time.
class SeededRng {
public:
  SeededRng(at::Device device, uint64_t seed)
      : lock(mutex), generators(device), before(generators.states()) {
    generators.seed(seed);
  }
  ~SeededRng() { generators.setStates(before); }
  SeededRng(const SeededRng &) = delete;
  SeededRng &operator=(const SeededRng &) = delete;

private:
  inline static std::mutex mutex;
  std::lock_guard<std::mutex> lock;
  Generators generators;
  Tensors before;
};

/// Mixes numbers into one, each of which changes all of it (splitmix64).
inline uint64_t splitMix64(std::initializer_list<uint64_t> numbers) {
  uint64_t state = 0;
  for (uint64_t number : numbers) {
    state += number + 0x9E3779B97F4A7C15u;
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
    state = (state ^ (state >> 27)) * 0x94D049BB133111EBu;
    state ^= state >> 31;
  }
  return state;
}

} // namespace ppcc::rt
