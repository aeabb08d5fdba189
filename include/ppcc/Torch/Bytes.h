// Tensors as one range of memory, for transports that carry bytes:
// Nccl<Tensors> gets tensors as they lie on the device.
#pragma once

#include "ppcc/Torch/Stage.h"

namespace ppcc::rt {

/// What is sent lies in one piece of memory, which TorchOptions::shapes sees
/// to; what comes is one tensor of bytes, which the stage opens.
template <> struct Bytes<Tensors> {
  /// Of this thread: where memory for what comes is taken.
  inline static thread_local at::Device device = at::kCPU;

  /// Empty where there are no tensors, or undefined ones. Throws
  /// std::runtime_error where they lie in several pieces.
  static std::span<std::byte> of(const Tensors &value);
  static bool resize(Tensors &value, size_t bytes);
};

} // namespace ppcc::rt
