// Tensors as bytes: a layout that tells types and shapes, and one buffer.
#pragma once

#include "ppcc/Torch/Stage.h"

namespace ppcc::rt {

/// The types and shapes of the tensors of a message.
class TensorLayout {
public:
  TensorLayout() = default;
  explicit TensorLayout(const Tensors &tensors);
  /// From what text() gave. Throws std::runtime_error.
  explicit TensorLayout(const std::string &text);

  bool operator==(const TensorLayout &) const = default;

  /// Whether a message is what pack() made, on its way through a transport of
  /// bytes.
  bool isPacked(const Tensors &value) const;
  std::string serialize() const;
  /// As in `float32 [4, 16], none`, for messages to people.
  std::string describe() const;
  /// Of the label and all tensors.
  int64_t numBytes() const;

  /// The tensors, copied into one buffer after room for a label.
  at::Tensor pack(const Tensors &tensors) const;
  /// What pack() put in, as views of the buffer.
  Tensors unpack(const at::Tensor &buffer) const;

private:
  struct TensorSpec {
    bool isDefined = false;
    at::ScalarType type{};
    std::vector<int64_t> shape;

    bool operator==(const TensorSpec &) const = default;
    int64_t numBytes() const;
  };

  std::vector<TensorSpec> all;
};

} // namespace ppcc::rt
