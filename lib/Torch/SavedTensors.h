// What autograd saves for a backward: noted while a forward runs, so that it
// can be moved out of the graph and back.
#pragma once

#include "Split.h"

#include <c10/core/Event.h>

namespace ppcc::rt {

/// The saved tensors of one graph. What a part of the backward has freed is no
/// longer among them.
class SavedTensors {
public:
  /// One tensor that a node of the graph has saved.
  struct Slot {
    at::Tensor tensor; ///< Undefined while it is moved out.
  };

  /// While it lives, what this thread's forwards save is noted. It replaces
  /// LibTorch's engine by one that does the same, and asks for notes.
  class Recording {
  public:
    explicit Recording(SavedTensors &notes);
    ~Recording();
    Recording(const Recording &) = delete;
    Recording &operator=(const Recording &) = delete;

  private:
    SavedTensors *before;
  };

  void add(const std::shared_ptr<Slot> &slot) { slots.push_back(slot); }

  /// The inputs of the graph, ahead of all changes to it: nodes that have saved
  /// a leaf look for what adds to its gradient.
  void keepAlive(const Tensors &inputs) {
    if (!slots.empty())
      leaves = Roots(inputs);
  }
  /// Lets go of the memory of leaves, as far as nodes have not saved it.
  void release(Tensors &inputs) const;

  /// Copies the memory of all saved tensors and of `leaves` to the host, and
  /// lets go of it. What lies in the memory of `staying` stays: weights.
  /// O(bytes).
  void offload(const Tensors &leaves, const Tensors &staying);
  /// The opposite.
  void reload();
  /// The memory that was moved out, to go further, and back: in the same order.
  Tensors releaseHostMemory();
  void adoptHostMemory(Tensors &&memory);

private:
  /// A tensor in memory that was moved: one of a slot, or a leaf.
  struct View {
    std::shared_ptr<Slot> slot; ///< Null for a leaf.
    at::Tensor leaf;
    at::TensorOptions options;
    std::vector<int64_t> sizes, strides;
    int64_t offset;
  };
  struct Memory {
    at::Tensor host; ///< The bytes.
    at::Device device;
    std::vector<View> views;
    std::shared_ptr<c10::Event> copyDone{}; ///< The copy, where it may go on.
  };

  std::vector<std::weak_ptr<Slot>> slots;
  Roots leaves;
  std::vector<Memory> moved;
};

} // namespace ppcc::rt
