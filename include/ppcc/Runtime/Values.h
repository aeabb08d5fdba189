// The values that a rank holds, each in a cell of its own.
#pragma once

#include "ppcc/Runtime/Program.h"

#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace ppcc::rt {

/// What a message carries: an output from stage `from` to stage `to`, or a
/// gradient. The same on both ranks.
struct Label {
  uint8_t pipe, slot;
  uint16_t from, to;
  uint32_t microbatch;

  /// From here on `slot` is the number of a kind that moves something between
  /// ranks, of stage `from`.
  static constexpr uint8_t firstMove = 8;
  bool isMove() const { return slot >= firstMove; }
  bool operator==(const Label &) const = default;
};

/// A value on its way between ranks.
template <class Value> struct Message {
  Label label;
  Value value;
};

/// Items by microbatch, of which T() is none. Each lies in the cell of a ring
/// that its number says; the ring grows until no two share one. O(distance of
/// the microbatches held at one time) memory.
template <class T> class MicrobatchMap {
public:
  /// Null when there is none.
  T *find(uint32_t microbatch) {
    Cell &cell = cells[microbatch & mask];
    return cell.microbatch == microbatch && cell.item ? &cell.item : nullptr;
  }

  /// False when the microbatch has an item already. Throws std::runtime_error
  /// when the ring would become too large.
  bool insert(uint32_t microbatch, T item) {
    while (cells[microbatch & mask].item) {
      if (cells[microbatch & mask].microbatch == microbatch)
        return false;
      grow();
    }
    cells[microbatch & mask] = {microbatch, item};
    return true;
  }

  /// The microbatch must be there.
  void erase(uint32_t microbatch) { cells[microbatch & mask].item = T(); }

  /// Calls `visit` with each microbatch that has an item.
  template <class Visit> void forEach(Visit visit) const {
    for (size_t i = 0; i != size(); ++i)
      if (cells[i].item)
        visit(cells[i].microbatch);
  }

  /// The number of cells, a power of two.
  size_t size() const { return size_t(mask) + 1; }

private:
  struct Cell {
    uint32_t microbatch = 0;
    T item{};
  };
  static constexpr size_t maxCells = size_t(1) << 22;

  void grow() {
    if (size() == maxCells)
      throw std::runtime_error("holds microbatches too far from each other");
    auto old = std::exchange(cells, std::make_unique<Cell[]>(2 * size()));
    for (uint32_t i = 0, end = std::exchange(mask, 2 * mask + 1); i <= end; ++i)
      if (old[i].item)
        cells[old[i].microbatch & mask] = old[i];
  }

  std::unique_ptr<Cell[]> cells = std::make_unique<Cell[]>(1);
  uint32_t mask = 0;
};

/// The cells of the values that travel along one edge: that of a microbatch is
/// `first + (microbatch & mask)`.
struct Ring {
  uint32_t first = 0, mask = 0;

  uint32_t at(uint32_t microbatch) const { return first + (microbatch & mask); }
};

/// The cell of a value that a rank holds, or is to hold.
template <class Value> struct alignas(64) ValueCell : Message<Value> {
  uint32_t readers = 0;   ///< Actions that have still to read it; 0: not here.
  uint32_t source = none; ///< The number of the rank it comes from.
  ValueCell *next = nullptr; ///< The receive posted after it, from its source.
  ValueCell *batch =
      nullptr; ///< The next of those whose receives end together.

  static constexpr uint32_t none = ~uint32_t(0);

  /// The value itself when nobody else is to read it, else a copy.
  Value take() {
    if constexpr (std::is_copy_constructible_v<Value>)
      if (readers > 1)
        return this->value;
    return std::move(this->value);
  }
};

} // namespace ppcc::rt
