// What the edges between stages carry.
#pragma once

#include "ppcc/Support/Id.h"
#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// A type of the elements of tensors; a row of ElementTypes.def.
enum class ElementType : uint8_t {
#define ELEMENT_TYPE(Name, Letters, Bytes, HasGradient) Name,
#include "ppcc/IR/ElementTypes.def"
};

/// `bf16`
StringRef elementTypeName(ElementType type);
/// The type of this name.
std::optional<ElementType> findElementType(StringRef name);
/// The names of all types.
ArrayRef<StringRef> elementTypeNames();

/// A tensor as a stage gives it to another.
struct Tensor {
  /// A size that differs from microbatch to microbatch.
  static constexpr int64_t dynamic = -1;
  static constexpr int64_t maxDim = int64_t(1) << 40;

  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> dims; ///< 0 to maxDim, or `dynamic`.

  bool operator==(const Tensor &) const = default;
  /// Whether a size is known only when the message is there.
  bool isDynamic() const;
  /// Whether its gradient goes back along the edge: that of whole numbers does
  /// not exist.
  bool hasGradient() const;
  /// Nothing when a size varies, or when they are more than 2^62.
  std::optional<int64_t> bytes() const;
};

/// `hidden[2, ?] bf16`
std::string tensorText(const Tensor &tensor);

/// What an edge carries, in the order of the message.
struct EdgeTensors {
  StageId from, to;
  std::vector<Tensor> tensors;

  bool operator==(const EdgeTensors &) const = default;
  /// Whether each message is led by one that says its shapes.
  bool needsShapes() const;
  /// Of a message, or of the gradient that comes back; nothing when that is not
  /// known beforehand.
  std::optional<int64_t> bytes(bool isGradient) const;
};

} // namespace ppcc
