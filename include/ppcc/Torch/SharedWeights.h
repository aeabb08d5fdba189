// Weights that several stages have: the replicas of bidirectional schedules,
// those tied between first and last, and those of further copies of the
// pipeline.
#pragma once

#include "ppcc/Torch/C10d.h"

#include <span>

namespace ppcc::rt {

/// The weights that a stage, and another of any rank, have under the same name.
/// Each place has a tensor of its own; in every step the sum of their gradients
/// goes to all, the same to the bit, so that equal optimizers keep them equal.
///
/// Where the program has actions that sum gradients (ActionRole), a stage hands
/// its own over after the last of them. The sums are there ahead of the
/// program's step, or in reduceGradients(). A program that steps must have
/// actions that connect all places of each weight.
///
/// All functions are collective, and throw Error.
class SharedWeights {
public:
  /// For ranks in threads of one process, from all stages; those of further
  /// replicas of the pipeline follow those of the first.
  explicit SharedWeights(std::span<TorchStage> stages,
                         milliseconds timeout = std::chrono::minutes(10));
  /// For a process a rank. The network must outlive it: that of the program, or
  /// with replicas one of all ranks, those of the first replica first.
  SharedWeights(TorchStage &stage, C10d &network,
                milliseconds timeout = std::chrono::minutes(10));
  SharedWeights(SharedWeights &&) noexcept;
  ~SharedWeights();

  /// Behind each step of the program: sums what it has not summed itself.
  /// O(bytes of the shared weights).
  void reduceGradients();
  /// The same, and then what STEP does, unless the program has; `stages` are
  /// all that this was made of.
  void step(std::span<TorchStage> stages);
  /// Names of weights that more than one place has.
  std::vector<std::string> names() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace ppcc::rt
