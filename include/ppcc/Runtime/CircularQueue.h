// Queues that allocate only while their longest length grows.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace ppcc::rt {

/// A queue whose items keep their addresses: places in a circle, which grows
/// where all are taken. What an item held stays in its place for the next.
template <class T> class CircularQueue {
public:
  CircularQueue() {
    nodes.push_back(std::make_unique<Node>());
    first = free = last = nodes.front().get();
  }
  bool empty() const { return first == free; }
  T &front() { return first->item; }
  T &back() { return last->item; }
  /// Takes the next place; what is in it is old.
  T &push() {
    if (free->next == first) [[unlikely]]
      grow();
    last = free;
    free = free->next;
    return last->item;
  }
  void pop() { first = first->next; }
  /// The same, and gives what it held.
  T take() { return std::move(std::exchange(first, first->next)->item); }
  /// Whether `test` is true of all, from the oldest on.
  template <class Test> bool all(Test test) {
    for (Node *place = first; place != free; place = place->next)
      if (!test(place->item))
        return false;
    return true;
  }

private:
  struct Node {
    T item{};
    Node *next = this;
  };

  [[gnu::cold, gnu::noinline]] void grow() {
    nodes.push_back(std::make_unique<Node>());
    free->next = nodes.back().get();
    nodes.back()->next = first;
  }

  std::vector<std::unique_ptr<Node>> nodes;
  /// The oldest, the first that is not taken, and the one before that.
  Node *first, *free, *last;
};

} // namespace ppcc::rt
