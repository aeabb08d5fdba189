// How many bytes the tensors of this process take.
#pragma once

#include "ppcc/Torch/Stage.h"

#include <mutex>

namespace ppcc {

/// What a rank holds between its actions, beside weights, their gradients and
/// messages on their way. Counted by LibTorch's allocator,
/// which it replaces in the whole process: one rank a process.
class ActivationBytes {
public:
  ActivationBytes();

  /// A step begins: what is there now does not count.
  void begin();
  /// Behind an action; `messages` are the bytes of those on their way.
  void note(const std::vector<rt::Parameter> &weights, uint64_t messages);
  /// The most since the first step.
  uint64_t peak() const { return most; }

private:
  std::mutex mutex; ///< Members of groups may end at the same time.
  uint64_t atBegin = 0, most = 0;
};

} // namespace ppcc
