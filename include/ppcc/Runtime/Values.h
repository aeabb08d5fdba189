// The values that a rank holds, by the edge they travel along and microbatch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ppcc::rt {

/// Items by microbatch, of which T() is none. Those under way at one time are
/// mostly neighbours: each lies in the cell of a ring that its number says, and
/// the few whose cell is taken in a hash table beside it. O(items held at one
/// time) memory.
template <class T> class ByMicrobatch {
public:
  /// Null when there is none.
  T *find(uint32_t microbatch) {
    Cell &cell = home(microbatch);
    if (cell.microbatch == microbatch && cell.item)
      return &cell.item;
    return aside ? findAside(microbatch) : nullptr;
  }

  /// False when the microbatch has an item already.
  bool insert(uint32_t microbatch, T item) {
    Cell *cell = &home(microbatch);
    if (cell->item || aside)
      return insertWhereTaken(microbatch, item);
    *cell = {microbatch, item};
    ++count;
    return true;
  }

  /// The microbatch must be there.
  void erase(uint32_t microbatch) {
    --count;
    Cell &cell = home(microbatch);
    if (cell.microbatch == microbatch && cell.item)
      cell.item = T();
    else
      aside->erase(microbatch);
  }

  /// Some microbatch that has an item. Searches all cells.
  bool any(uint32_t &microbatch) const {
    for (uint32_t i = 0; i <= mask; ++i)
      if (cells[i].item)
        return microbatch = cells[i].microbatch, true;
    return aside && !aside->empty() &&
           (microbatch = aside->begin()->first, true);
  }

private:
  struct Cell {
    uint32_t microbatch = 0;
    T item{};
  };
  static constexpr uint32_t mostCells = 8; ///< An item.

  Cell &home(uint32_t microbatch) const { return cells[microbatch & mask]; }

  [[gnu::cold]] T *findAside(uint32_t microbatch) {
    auto found = aside->find(microbatch);
    return found == aside->end() ? nullptr : &found->second;
  }
  [[gnu::cold]] bool insertWhereTaken(uint32_t microbatch, T item) {
    if (find(microbatch))
      return false;
    ++count;
    while (home(microbatch).item && mask < mostCells * count)
      grow();
    if (!home(microbatch).item) {
      home(microbatch) = {microbatch, item};
      return true;
    }
    if (!aside)
      aside = std::make_unique<std::unordered_map<uint32_t, T>>();
    aside->emplace(microbatch, item);
    return true;
  }
  void grow() {
    auto old =
        std::exchange(cells, std::make_unique<Cell[]>(2 * (size_t(mask) + 1)));
    uint32_t oldMask = std::exchange(mask, 2 * mask + 1);
    for (uint32_t i = 0; i <= oldMask; ++i)
      if (old[i].item)
        home(old[i].microbatch) = old[i];
  }

  std::unique_ptr<Cell[]> cells = std::make_unique<Cell[]>(4);
  uint32_t mask = 3; ///< The number of cells, a power of two, less one.
  uint32_t count = 0;
  std::unique_ptr<std::unordered_map<uint32_t, T>> aside; ///< Null at first.
};

/// A value that has come, or is to come, to a rank.
template <class Value> struct Held {
  uint32_t number = 0, microbatch = 0;
  uint32_t readers = 0; ///< Actions that have still to read it.
  uint32_t batch = 0;   ///< The batch of its receive; 0 for none.
  uint32_t source = 0;  ///< Where it comes from, in the engine's list.
  bool pending = false; ///< Its receive is posted and has not ended.
  bool received = false;
  Value value{};
  Held *nextUnused = nullptr;

  /// The value itself when nobody else is to read it, else a copy.
  Value take() {
    if constexpr (std::is_copy_constructible_v<Value>)
      if (readers > 1)
        return value;
    return std::move(value);
  }
};

/// Allocates only while the number of values that are held at one time grows.
/// Held values keep their address.
template <class Value> class ValueTable {
public:
  /// Of values with numbers below `numValues`.
  explicit ValueTable(size_t numValues) : places(numValues) {}

  /// Null when there is none.
  Held<Value> *find(uint32_t number, uint32_t microbatch) {
    Held<Value> **held = places[number].find(microbatch);
    return held ? *held : nullptr;
  }

  /// Null when it is there already.
  Held<Value> *insert(uint32_t number, uint32_t microbatch) {
    if (!unused)
      unused = &all.emplace_back();
    Held<Value> *held = unused;
    if (!places[number].insert(microbatch, held))
      return nullptr;
    unused = held->nextUnused;
    held->number = number;
    held->microbatch = microbatch;
    held->batch = 0;
    held->pending = held->received = false;
    ++count;
    return held;
  }

  void erase(Held<Value> &held) {
    places[held.number].erase(held.microbatch);
    held.nextUnused = unused;
    unused = &held;
    --count;
  }

  size_t size() const { return count; }
  /// The microbatch of some value that is held.
  bool any(uint32_t &microbatch) const {
    for (const auto &place : places)
      if (place.any(microbatch))
        return true;
    return false;
  }

private:
  std::vector<ByMicrobatch<Held<Value> *>> places; ///< By number.
  std::deque<Held<Value>> all;
  Held<Value> *unused = nullptr; ///< The first.
  size_t count = 0;
};

} // namespace ppcc::rt
