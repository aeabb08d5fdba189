#include "TensorLayout.h"

#include "ppcc/Torch/Bytes.h"

#include <ATen/ops/empty.h>

#include <sstream>

using namespace ppcc::rt;

namespace {

/// Tensors begin at multiples of this, as LibTorch's own do.
constexpr int64_t alignment = 64;
static_assert(sizeof(Label) <= alignment);

int64_t aligned(int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

at::Tensor viewOf(const at::Tensor &buffer, int64_t at, int64_t bytes,
                  at::ScalarType type, at::IntArrayRef shape) {
  return buffer.narrow(0, at, bytes).view(type).view(shape);
}

} // namespace

int64_t TensorLayout::TensorSpec::numBytes() const {
  if (!isDefined)
    return 0;
  int64_t bytes = static_cast<int64_t>(c10::elementSize(type));
  for (int64_t size : shape)
    bytes *= size;
  return bytes;
}

TensorLayout::TensorLayout(const Tensors &tensors) {
  for (const at::Tensor &tensor : tensors) {
    TensorSpec &one = all.emplace_back();
    one.isDefined = tensor.defined();
    if (!one.isDefined)
      continue;
    one.type = tensor.scalar_type();
    one.shape = tensor.sizes().vec();
  }
}

TensorLayout::TensorLayout(const std::string &text) {
  std::istringstream in(text);
  size_t count = 0, dims = 0;
  int type = 0;
  in >> count;
  while (in && all.size() != count) {
    TensorSpec &one = all.emplace_back();
    in >> one.isDefined >> type >> dims;
    one.type = static_cast<at::ScalarType>(type);
    for (size_t i = 0; in && i != dims; ++i)
      in >> one.shape.emplace_back();
  }
  if (!in)
    throw std::runtime_error("a message does not describe its tensors");
}

bool TensorLayout::isPacked(const Tensors &value) const {
  return value.size() == 1 && value[0].defined() && value[0].dim() == 1 &&
         value[0].scalar_type() == at::kByte && value[0].numel() == numBytes();
}

std::string TensorLayout::serialize() const {
  std::ostringstream out;
  out << all.size();
  for (const TensorSpec &one : all) {
    out << ' ' << one.isDefined << ' ' << static_cast<int>(one.type) << ' '
        << one.shape.size();
    for (int64_t size : one.shape)
      out << ' ' << size;
  }
  return out.str();
}

std::string TensorLayout::describe() const {
  std::ostringstream out;
  for (const TensorSpec &one : all) {
    out << (&one == all.data() ? "" : ", ");
    if (one.isDefined)
      out << one.type << ' ' << at::IntArrayRef(one.shape);
    else
      out << "none";
  }
  return out.str();
}

int64_t TensorLayout::numBytes() const {
  int64_t bytes = alignment;
  for (const TensorSpec &one : all)
    bytes += aligned(one.numBytes());
  return bytes;
}

at::Tensor TensorLayout::pack(const Tensors &tensors) const {
  at::Device device = at::kCPU;
  for (const at::Tensor &tensor : tensors)
    device = tensor.defined() ? tensor.device() : device;
  at::Tensor buffer =
      at::empty({numBytes()}, at::device(device).dtype(at::kByte));
  int64_t at = alignment;
  for (size_t i = 0; i != all.size(); ++i) {
    if (int64_t bytes = all[i].numBytes())
      viewOf(buffer, at, bytes, all[i].type, all[i].shape).copy_(tensors[i]);
    at += aligned(all[i].numBytes());
  }
  return buffer;
}

Tensors TensorLayout::unpack(const at::Tensor &buffer) const {
  Tensors tensors;
  int64_t at = alignment;
  for (const TensorSpec &one : all) {
    at::Tensor &tensor = tensors.emplace_back();
    int64_t bytes = one.numBytes();
    if (bytes)
      tensor = viewOf(buffer, at, bytes, one.type, one.shape);
    else if (one.isDefined)
      tensor = at::empty(one.shape, buffer.options().dtype(one.type));
    at += aligned(bytes);
  }
  return tensors;
}

std::span<std::byte> Bytes<Tensors>::of(const Tensors &value) {
  const at::Tensor *first = nullptr;
  for (const at::Tensor &tensor : value) {
    if (!tensor.defined())
      continue;
    if (!first)
      first = &tensor;
    else if (!tensor.storage().is_alias_of(first->storage()))
      throw std::runtime_error("the tensors of a message lie in several pieces "
                               "of memory: give TorchOptions::shapes");
  }
  if (!first)
    return {};
  return {static_cast<std::byte *>(first->storage().data()),
          first->storage().nbytes()};
}

bool Bytes<Tensors>::resize(Tensors &value, size_t bytes) {
  if (value.size() != 1 || of(value).size() != bytes)
    value = {at::empty({static_cast<int64_t>(bytes)},
                       at::device(device).dtype(at::kByte))};
  return true;
}
