#include "SavedTensors.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Event.h>
#include <c10/core/GradMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>

using namespace ppcc::rt;
using torch::autograd::Engine;
using torch::autograd::SavedVariableHooks;

namespace {

/// Where this thread notes what is saved, or null.
thread_local SavedTensors *recorder = nullptr;

/// Holds one saved tensor in a slot.
class Hooks : public SavedVariableHooks {
public:
  explicit Hooks(SavedTensors &recorder) { recorder.add(slot); }

  void call_pack_hook(const at::Tensor &tensor) override {
    // Without its history: an output holds the node that saves it.
    slot->tensor = tensor.tensor_data();
  }
  at::Tensor call_unpack_hook() override {
    if (!slot->tensor.defined())
      throw std::runtime_error(
          "its activation was moved to the host and not back");
    return slot->tensor;
  }

private:
  std::shared_ptr<SavedTensors::Slot> slot =
      std::make_shared<SavedTensors::Slot>();
};

/// LibTorch asks its engine what is to be done with what it saves; the default
/// of C++ is not public.
class RecordingEngine : public Engine {
public:
  std::unique_ptr<SavedVariableHooks>
  get_default_saved_variable_hooks() override {
    return recorder ? std::make_unique<Hooks>(*recorder) : nullptr;
  }

  static void install() {
    // It lives as long as the process, as the one in its place does.
    static RecordingEngine &engine = *new RecordingEngine();
    static std::once_flag once;
    std::call_once(once, [] {
      torch::autograd::set_default_engine_stub(
          []() -> Engine & { return engine; });
    });
  }
};

/// The stream of a device that copies in one direction run on, beside what it
/// computes; none of the CPU.
class CopyStream {
public:
  CopyStream(c10::Device device, bool toHost) : device(device) {
    if (device.is_cpu())
      return;
    c10::impl::VirtualGuardImpl guard(device.type());
    static std::mutex mutex;
    static std::unordered_map<c10::Device, c10::Stream> both[2];
    std::lock_guard lock(mutex);
    auto &all = both[toHost];
    auto found = all.find(device);
    if (found == all.end())
      found = all.emplace(device, guard.getStreamFromGlobalPool(device)).first;
    stream = found->second;
  }

  /// Calls `copy` so that it runs there, after what was computed so far and
  /// after `earlier`; gives the event of its end.
  template <class Copy>
  std::shared_ptr<c10::Event> run(Copy copy, c10::Event *earlier = nullptr) {
    if (!stream) {
      copy();
      return nullptr;
    }
    c10::impl::VirtualGuardImpl guard(device.type());
    auto event = std::make_shared<c10::Event>(device.type());
    event->record(guard.getStream(device));
    event->block(*stream);
    if (earlier)
      earlier->block(*stream);
    c10::StreamGuard on(*stream);
    copy();
    event->record(*stream);
    return event;
  }
  /// Lets the host wait for an event of it.
  void synchronize(const std::shared_ptr<c10::Event> &event) const {
    while (!event->query())
      std::this_thread::yield();
  }
  /// Memory that belongs to another stream is not given away before this one
  /// has used it.
  void keep(const at::Tensor &tensor) const {
    if (stream)
      c10::impl::VirtualGuardImpl(device.type())
          .recordDataPtrOnStream(tensor.storage().data_ptr(), *stream);
  }

private:
  c10::Device device;
  c10::optional<c10::Stream> stream;
};

/// Memory that is none of the device's; for the CPU itself, none of its
/// tensors', for others pinned.
at::Tensor onHost(int64_t bytes, c10::Device device) {
  if (!device.is_cpu())
    return at::empty({bytes}, at::dtype(at::kByte).pinned_memory(true));
  auto memory = std::make_unique<std::byte[]>(static_cast<size_t>(bytes));
  std::byte *data = memory.release();
  return at::from_blob(
      data, {bytes}, [data](void *) { delete[] data; }, at::kByte);
}

/// All bytes of a storage.
at::Tensor bytesOf(const at::Storage &storage) {
  at::Tensor all =
      at::empty({0}, at::device(storage.device()).dtype(at::kByte));
  return all.set_(storage, 0, {static_cast<int64_t>(storage.nbytes())}, {1});
}

} // namespace

SavedTensors::Recording::Recording(SavedTensors &now) : before(recorder) {
  RecordingEngine::install();
  recorder = &now;
}
SavedTensors::Recording::~Recording() { recorder = before; }

void SavedTensors::release(Tensors &inputs) const {
  at::NoGradGuard guard;
  for (at::Tensor &leaf : std::exchange(inputs, {}))
    if (leaf.defined() && !slots.empty())
      leaf.set_data(at::empty({0}, leaf.options().requires_grad(false)));
}

void SavedTensors::offload(const Tensors &leaves, const Tensors &staying) {
  at::NoGradGuard guard;
  std::set<const void *> stays;
  for (const at::Tensor &tensor : staying)
    stays.insert(tensor.storage().unsafeGetStorageImpl());
  std::map<const void *, size_t> known; // Of storages, in `moved`.
  auto add = [&](const at::Tensor &tensor, View view) {
    if (!tensor.defined() || !tensor.has_storage())
      return;
    const at::Storage &storage = tensor.storage();
    if (stays.contains(storage.unsafeGetStorageImpl()))
      return;
    auto [found, isNew] =
        known.try_emplace(storage.unsafeGetStorageImpl(), moved.size());
    if (isNew) {
      at::Tensor host =
          onHost(static_cast<int64_t>(storage.nbytes()), storage.device());
      at::Tensor bytes = bytesOf(storage);
      CopyStream stream(storage.device(), true);
      stream.keep(bytes);
      auto copyDone = stream.run([&] { host.copy_(bytes, true); });
      moved.push_back({std::move(host), storage.device(), {}, copyDone});
    }
    view.options = tensor.options();
    view.sizes = tensor.sizes().vec();
    view.strides = tensor.strides().vec();
    view.offset = tensor.storage_offset();
    moved[found->second].views.push_back(std::move(view));
  };
  for (const std::weak_ptr<Slot> &weak : slots)
    if (std::shared_ptr<Slot> slot = weak.lock())
      add(slot->tensor, {slot, {}, {}, {}, {}, 0});
  for (const at::Tensor &leaf : leaves)
    add(leaf, {nullptr, leaf, {}, {}, {}, 0});
  for (Memory &memory : moved)
    for (View &view : memory.views)
      if (view.slot)
        view.slot->tensor.reset();
      else
        view.leaf.set_data(at::empty({0}, view.options.requires_grad(false)));
}

Tensors SavedTensors::releaseHostMemory() {
  Tensors all;
  for (Memory &memory : moved) {
    // The host is to read it.
    if (memory.copyDone)
      CopyStream(memory.device, true)
          .synchronize(std::exchange(memory.copyDone, {}));
    all.push_back(std::move(memory.host));
  }
  return all;
}

void SavedTensors::adoptHostMemory(Tensors &&memory) {
  if (memory.size() != moved.size())
    throw std::runtime_error("other memory comes back than was given");
  for (size_t i = 0; i != moved.size(); ++i)
    moved[i].host = std::move(memory[i]);
}

void SavedTensors::reload() {
  at::NoGradGuard guard;
  for (Memory &memory : std::exchange(moved, {})) {
    at::Tensor bytes = at::empty(memory.host.sizes(),
                                 at::device(memory.device).dtype(at::kByte));
    CopyStream stream(memory.device, false);
    stream.keep(bytes);
    auto back = stream.run([&] { bytes.copy_(memory.host, true); },
                           memory.copyDone.get());
    // What is computed from now on reads it.
    if (back)
      back->block(c10::impl::VirtualGuardImpl(memory.device.type())
                      .getStream(memory.device));
    for (View &view : memory.views) {
      at::Tensor tensor = at::empty({0}, view.options.requires_grad(false));
      tensor.set_(bytes.storage(), view.offset, view.sizes, view.strides);
      if (view.slot)
        view.slot->tensor = std::move(tensor);
      else
        view.leaf.set_data(tensor);
    }
  }
}
