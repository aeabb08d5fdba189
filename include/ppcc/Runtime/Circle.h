// Queues that allocate only while their longest length grows.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace ppcc::rt {

/// A queue whose items keep their addresses: places in a circle, which grows
/// where all are taken. What an item held stays in its place for the next.
template <class T> class Circle {
public:
  Circle() {
    places.push_back(std::make_unique<Place>());
    first = free = last = places.front().get();
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
    for (Place *place = first; place != free; place = place->next)
      if (!test(place->item))
        return false;
    return true;
  }

private:
  struct Place {
    T item{};
    Place *next = this;
  };

  [[gnu::cold, gnu::noinline]] void grow() {
    places.push_back(std::make_unique<Place>());
    free->next = places.back().get();
    places.back()->next = first;
  }

  std::vector<std::unique_ptr<Place>> places;
  /// The oldest, the first that is not taken, and the one before that.
  Place *first, *free, *last;
};

} // namespace ppcc::rt
