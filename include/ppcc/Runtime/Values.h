// The values that a rank holds, by the edge they travel along and microbatch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace ppcc::rt {

/// A value that has come, or is to come, to a rank.
template <class Value> struct Held {
  uint64_t key = 0;
  uint32_t readers = 0; ///< Actions that have still to read it.
  uint32_t batch = 0;   ///< The batch of its receive; 0 for none.
  size_t source = 0;    ///< Where it comes from, in the engine's list.
  bool pending = false; ///< Its receive is posted and has not ended.
  bool received = false;
  uint8_t slots = 0; ///< Of an activation: what was done with it.
  Value value{};
};

/// A hash table that allocates only while the number of values that are held
/// at one time grows. Held values keep their address.
template <class Value> class ValueTable {
public:
  static uint64_t keyOf(uint32_t number, uint32_t microbatch) {
    return uint64_t(number) << 32 | microbatch;
  }

  /// Null when there is none.
  Held<Value> *find(uint64_t key) const {
    for (size_t i = homeOf(key);; i = next(i)) {
      if (!cells[i].held)
        return nullptr;
      if (cells[i].key == key)
        return cells[i].held;
    }
  }

  /// The key must be new.
  Held<Value> &insert(uint64_t key) {
    if (2 * (count + 1) > cells.size())
      grow();
    Held<Value> *held;
    if (unused.empty()) {
      held = &all.emplace_back();
    } else {
      held = unused.back();
      unused.pop_back();
    }
    held->key = key;
    held->batch = 0;
    held->pending = held->received = false;
    held->slots = 0;
    place(key, held);
    ++count;
    return *held;
  }

  void erase(Held<Value> &held) {
    size_t hole = homeOf(held.key);
    while (cells[hole].held != &held)
      hole = next(hole);
    // Later entries of the run move up, so that no search stops at the hole.
    for (size_t i = next(hole); cells[i].held; i = next(i)) {
      size_t home = homeOf(cells[i].key);
      if (((i - home) & (cells.size() - 1)) < ((i - hole) & (cells.size() - 1)))
        continue;
      cells[hole] = cells[i];
      hole = i;
    }
    cells[hole].held = nullptr;
    --count;
    unused.push_back(&held);
  }

  size_t size() const { return count; }
  /// Some value that is held, or null.
  const Held<Value> *any() const {
    for (const Cell &cell : cells)
      if (cell.held)
        return cell.held;
    return nullptr;
  }

private:
  struct Cell {
    uint64_t key = 0;
    Held<Value> *held = nullptr;
  };

  size_t homeOf(uint64_t key) const {
    // Fibonacci hashing: the high bits of the product are well mixed.
    return (key * 0x9E3779B97F4A7C15u) >> shift;
  }
  size_t next(size_t i) const { return (i + 1) & (cells.size() - 1); }
  void place(uint64_t key, Held<Value> *held) {
    size_t i = homeOf(key);
    while (cells[i].held)
      i = next(i);
    cells[i] = {key, held};
  }
  void grow() {
    std::vector<Cell> old(2 * cells.size());
    old.swap(cells);
    --shift;
    for (const Cell &cell : old)
      if (cell.held)
        place(cell.key, cell.held);
  }

  std::vector<Cell> cells = std::vector<Cell>(64);
  unsigned shift = 64 - 6;
  size_t count = 0;
  std::deque<Held<Value>> all;
  std::vector<Held<Value> *> unused;
};

} // namespace ppcc::rt
