// Random numbers that are the same everywhere.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc::synthesis {

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  /// Below `n`, which is not 0.
  uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >>
                                 64);
  }

private:
  uint64_t state;
};

} // namespace ppcc::synthesis
