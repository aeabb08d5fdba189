#include "ppcc/IR/Tensors.h"

using namespace ppcc;

static constexpr StringRef names[] = {
#define ELEMENT_TYPE(Name, Letters, Bytes, HasGradient) Letters,
#include "ppcc/IR/ElementTypes.def"
};
static constexpr struct {
  int64_t size;
  bool hasGradient;
} types[] = {
#define ELEMENT_TYPE(Name, Letters, Bytes, HasGradient) {Bytes, HasGradient},
#include "ppcc/IR/ElementTypes.def"
};
static constexpr int64_t maxBytes = int64_t(1) << 62;

StringRef ppcc::elementTypeName(ElementType type) {
  return names[unsigned(type)];
}

std::optional<ElementType> ppcc::findElementType(StringRef name) {
  return findEnum<ElementType>(names, name);
}

ArrayRef<StringRef> ppcc::elementTypeNames() { return names; }

bool Tensor::isDynamic() const { return llvm::is_contained(dims, dynamic); }

bool Tensor::hasGradient() const { return types[unsigned(type)].hasGradient; }

std::optional<int64_t> Tensor::bytes() const {
  if (isDynamic())
    return std::nullopt;
  if (llvm::is_contained(dims, 0))
    return 0;
  __int128 result = types[unsigned(type)].size;
  for (int64_t dim : dims)
    if ((result *= dim) > maxBytes)
      return std::nullopt;
  return int64_t(result);
}

std::string ppcc::tensorText(const Tensor &tensor) {
  std::string text = tensor.name + "[";
  for (auto [i, dim] : llvm::enumerate(tensor.dims))
    text += fmt::format("{}{}", i == 0 ? "" : ", ",
                        dim == Tensor::dynamic ? "?" : std::to_string(dim));
  return text + "] " + elementTypeName(tensor.type).str();
}

bool EdgeTensors::needsShapes() const {
  return llvm::any_of(tensors,
                      [](const Tensor &tensor) { return tensor.isDynamic(); });
}

std::optional<int64_t> EdgeTensors::bytes(bool isGradient) const {
  __int128 sum = 0;
  for (const Tensor &tensor : tensors) {
    if (isGradient && !tensor.hasGradient())
      continue;
    auto bytes = tensor.bytes();
    if (!bytes || (sum += *bytes) > maxBytes)
      return std::nullopt;
  }
  return int64_t(sum);
}
