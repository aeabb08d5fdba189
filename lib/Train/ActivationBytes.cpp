#include "ActivationBytes.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>
#include <atomic>
#include <malloc.h>

using namespace ppcc;

namespace {

std::atomic<uint64_t> live = 0;

/// Takes memory as LibTorch's own allocator does, and counts it.
class CountingAllocator : public c10::Allocator {
public:
  c10::DataPtr allocate(size_t bytes) const override {
    void *data = c10::alloc_cpu(bytes);
    live += malloc_usable_size(data);
    return {data, data, free, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return free; }

private:
  static void free(void *data) {
    live -= malloc_usable_size(data);
    c10::free_cpu(data);
  }
};

} // namespace

ActivationBytes::ActivationBytes() {
  static CountingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/UINT8_MAX);
}

void ActivationBytes::begin() { atBegin = live; }

void ActivationBytes::note(const std::vector<rt::Parameter> &weights,
                           uint64_t messages) {
  uint64_t now = live, other = atBegin + messages;
  for (const rt::Parameter &weight : weights)
    if (const at::Tensor &grad = weight.value.grad(); grad.defined())
      other += grad.nbytes();
  std::lock_guard lock(mutex);
  most = std::max(most, now > other ? now - other : 0);
}
