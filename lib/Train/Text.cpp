#include "Text.h"

#include <random>

using namespace ppcc;

Samples::Samples(const TrainOptions &options) : options(options) {
  std::array<bool, 256> seen{};
  for (unsigned char byte : options.text)
    seen[byte] = true;
  for (size_t byte = 0; byte != seen.size(); ++byte)
    if (seen[byte])
      tokenOf[byte] = numTokens++;
}

std::vector<int64_t> Samples::at(uint64_t step, uint32_t microbatch) const {
  std::seed_seq seed{options.seed, step, uint64_t(microbatch)};
  std::mt19937_64 random(seed);
  size_t length = options.length;
  if (options.minLength != 0)
    length -= random() % (options.length - options.minLength + 1);
  std::vector<int64_t> tokens;
  tokens.reserve(options.batch * (length + 1));
  for (uint32_t sample = 0; sample != options.batch; ++sample) {
    size_t start = random() % (options.text.size() - length);
    for (size_t i = start; i != start + length + 1; ++i)
      tokens.push_back(tokenOf[static_cast<unsigned char>(options.text[i])]);
  }
  return tokens;
}
