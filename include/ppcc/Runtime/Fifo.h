// Queues in rings, which allocate only while their longest length grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ppcc::rt {

template <class T> class Fifo {
public:
  bool empty() const { return count == 0; }
  size_t size() const { return count; }
  T &front() { return ring[head]; }
  /// The one that is `i` places behind the first.
  T &operator[](size_t i) { return ring[(head + i) & mask]; }

  void push(T &&value) {
    if (count == mask + 1)
      grow();
    ring[(head + count++) & mask] = std::move(value);
  }
  /// Takes the first out.
  T pop() {
    T value;
    popInto(value);
    return value;
  }
  void popInto(T &value) {
    value = std::move(ring[head]);
    head = (head + 1) & mask;
    --count;
  }

private:
  [[gnu::cold]] void grow() {
    std::vector<T> larger(ring.empty() ? 4 : 2 * ring.size());
    for (size_t i = 0; i != count; ++i)
      larger[i] = std::move((*this)[i]);
    ring.swap(larger);
    head = 0;
    mask = ring.size() - 1;
  }

  std::vector<T> ring;      ///< Empty, or a power of two,
  size_t mask = ~size_t(0); ///< less one.
  size_t head = 0, count = 0;
};

/// A queue for each rank.
template <class T> class FifoByRank {
public:
  /// The queue of a rank, which stays there until another rank is asked for.
  Fifo<T> &of(uint32_t rank) {
    if (rank >= queues.size()) [[unlikely]]
      queues.resize(rank + 1);
    return queues[rank];
  }
  template <class Visit> void forEach(Visit visit) {
    for (Fifo<T> &queue : queues)
      visit(queue);
  }

private:
  std::vector<Fifo<T>> queues;
};

} // namespace ppcc::rt
