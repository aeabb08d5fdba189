// Weights that several stages have: the replicas of bidirectional schedules,
// and weights tied between first and last.
#pragma once

#include "ppcc/Torch/C10d.h"

#include <span>

namespace ppcc::rt {

/// The weights of one rank that it, or another, has under the same name again.
/// Each place has a tensor of its own; after every step the sum of their
/// gradients goes to all, the same to the bit, so that equal optimizers keep
/// them equal.
///
/// All functions are collective, and throw Error.
class SharedWeights {
public:
  /// For ranks in threads of one process, from all stages.
  explicit SharedWeights(std::span<TorchStage> stages);
  /// For a process a rank. The network must outlive it.
  SharedWeights(const TorchStage &stage, C10d &network,
                std::chrono::milliseconds patience = std::chrono::minutes(10));
  SharedWeights(SharedWeights &&) noexcept;
  ~SharedWeights();

  /// Behind the step of the program: sums the gradients. O(bytes of the shared
  /// weights).
  void sumGradients();
  /// Names of weights that more than one place has.
  std::vector<std::string> names() const;

private:
  class Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace ppcc::rt
