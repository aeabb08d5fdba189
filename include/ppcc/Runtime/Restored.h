// What a rank does again later, and need not keep until then.
#pragma once

#include "ppcc/Runtime/Rows.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace ppcc::rt {

/// The stages and microbatches of a rank for which its list has an action that
/// restores something (Kind::restores).
class Restored {
public:
  /// The rows must have been checked. O(rows), and nothing where no kind
  /// restores.
  Restored(const Program &program, uint32_t rank) {
    if (!std::ranges::any_of(program.kinds, &Kind::restores))
      return;
    RowReader rows(program.ranks[rank]);
    for (const Segment &segment : program.ranks[rank].segments)
      for (uint64_t i = 0; i != segment.rows; ++i)
        add(program, rows[segment.firstRow + i], segment);
    std::sort(single.begin(), single.end());
  }

  bool any() const { return !single.empty() || !repeated.empty(); }
  /// Whether what this action fills is restored. O(log(rows)), and O(rows in
  /// loops).
  bool has(const Row &row, uint8_t slots) const {
    if (std::binary_search(single.begin(), single.end(), keyOf(row, slots)))
      return true;
    return std::any_of(
        repeated.begin(), repeated.end(), [&](const Repeated &loop) {
          int64_t beyond = int64_t(row.microbatch) - loop.row.microbatch;
          return loop.row.pipe == row.pipe && loop.row.stage == row.stage &&
                 loop.slots == slots && beyond % loop.advance == 0 &&
                 beyond / loop.advance >= 0 &&
                 beyond / loop.advance < loop.count;
        });
  }

private:
  using Key = std::tuple<uint8_t, uint16_t, uint32_t, uint8_t>;
  struct Repeated {
    Row row;
    uint8_t slots;
    uint32_t count;
    int64_t advance; ///< Not 0.
  };

  static Key keyOf(const Row &row, uint8_t slots) {
    return {row.pipe, row.stage, row.microbatch, slots};
  }
  void add(const Program &program, const Row &row, const Segment &segment) {
    uint8_t slots = program.kinds[row.kind].restores;
    if (slots == 0 || row.microbatch == Row::noMicrobatch)
      return;
    if (segment.count == 1)
      single.push_back(keyOf(row, slots));
    else
      repeated.push_back({row, slots, segment.count, segment.advance});
  }

  std::vector<Key> single; ///< Sorted.
  std::vector<Repeated> repeated;
};

} // namespace ppcc::rt
