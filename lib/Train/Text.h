// Samples from a text, as tokens: a token is a byte.
#pragma once

#include "Options.h"

#include <array>
#include <string>
#include <vector>

namespace ppcc {

/// Gives each microbatch of each step its samples, whoever asks.
class Samples {
public:
  /// The text must be longer than a sample.
  explicit Samples(const TrainOptions &options);

  /// How many different tokens there are.
  uint32_t vocabulary() const { return numTokens; }
  /// `batch` rows of tokens, of one length: what is read, and one further what
  /// is to be said.
  std::vector<int64_t> at(uint64_t step, uint32_t microbatch) const;

private:
  const TrainOptions &options;
  std::array<int64_t, 256> tokenOf{};
  uint32_t numTokens = 0;
};

} // namespace ppcc
