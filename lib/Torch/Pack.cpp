#include "Pack.h"

#include <ATen/ops/empty.h>

#include <cstring>
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

int64_t TensorsLayout::One::numBytes() const {
  if (!isDefined)
    return 0;
  int64_t bytes = static_cast<int64_t>(c10::elementSize(type));
  for (int64_t size : shape)
    bytes *= size;
  return bytes;
}

TensorsLayout::TensorsLayout(const Tensors &tensors) {
  for (const at::Tensor &tensor : tensors) {
    One &one = all.emplace_back();
    one.isDefined = tensor.defined();
    if (!one.isDefined)
      continue;
    one.type = tensor.scalar_type();
    one.shape = tensor.sizes().vec();
  }
}

TensorsLayout::TensorsLayout(const std::string &text) {
  std::istringstream in(text);
  size_t count = 0, dims = 0;
  int type = 0;
  in >> count;
  while (in && all.size() != count) {
    One &one = all.emplace_back();
    in >> one.isDefined >> type >> dims;
    one.type = static_cast<at::ScalarType>(type);
    for (size_t i = 0; in && i != dims; ++i)
      in >> one.shape.emplace_back();
  }
  if (!in)
    throw std::runtime_error("a message does not tell its tensors");
}

std::string TensorsLayout::text() const {
  std::ostringstream out;
  out << all.size();
  for (const One &one : all) {
    out << ' ' << one.isDefined << ' ' << static_cast<int>(one.type) << ' '
        << one.shape.size();
    for (int64_t size : one.shape)
      out << ' ' << size;
  }
  return out.str();
}

std::string TensorsLayout::words() const {
  std::ostringstream out;
  for (const One &one : all) {
    out << (&one == all.data() ? "" : ", ");
    if (one.isDefined)
      out << one.type << ' ' << at::IntArrayRef(one.shape);
    else
      out << "none";
  }
  return out.str();
}

int64_t TensorsLayout::numBytes() const {
  int64_t bytes = alignment;
  for (const One &one : all)
    bytes += aligned(one.numBytes());
  return bytes;
}

at::Tensor TensorsLayout::pack(const Label &label,
                               const Tensors &tensors) const {
  at::Tensor buffer = at::empty({numBytes()}, at::kByte);
  std::memcpy(buffer.data_ptr(), &label, sizeof label);
  int64_t at = alignment;
  for (size_t i = 0; i != all.size(); ++i) {
    if (int64_t bytes = all[i].numBytes())
      viewOf(buffer, at, bytes, all[i].type, all[i].shape).copy_(tensors[i]);
    at += aligned(all[i].numBytes());
  }
  return buffer;
}

Message<Tensors> TensorsLayout::unpack(const at::Tensor &buffer) const {
  Message<Tensors> message{};
  std::memcpy(&message.label, buffer.data_ptr(), sizeof message.label);
  int64_t at = alignment;
  for (const One &one : all) {
    at::Tensor &tensor = message.value.emplace_back();
    int64_t bytes = one.numBytes();
    if (bytes)
      tensor = viewOf(buffer, at, bytes, one.type, one.shape);
    else if (one.isDefined)
      tensor = at::empty(one.shape, one.type);
    at += aligned(bytes);
  }
  return message;
}
