// Goes through the list of a rank.
#pragma once

#include "ppcc/Runtime/Rows.h"
#include "ppcc/Runtime/Wiring.h"

#include <algorithm>
#include <span>
#include <vector>

namespace ppcc::rt {

/// A row of the list, as it stands in this turn of its loop.
struct Member {
  Row row;
  const Operation *does;

  bool is(KindClass kindClass) const {
    return does->kind->kindClass == kindClass;
  }
  bool isWork() const { return does->kind->isWork(); }
};

/// The list of a rank, item by item: an item is an action or a group. The rows
/// must have been checked.
class Items {
public:
  Items(const Program &program, uint32_t rank, const Wiring &wiring)
      : wiring(wiring), list(program.ranks[rank]), rows(list) {
    enterSegment();
  }

  /// Goes back to the first item.
  void rewind() {
    segment = 0;
    enterSegment();
  }
  bool atEnd() const { return segment == list.segments.size; }

  /// The next item; it stays until advance().
  std::span<const Member> load() {
    const Segment &loop = list.segments[segment];
    uint64_t end = loop.firstRow + loop.rows;
    next = at;
    alone = memberAt(next++);
    if (next == end || !rows[next].joined())
      return item = {&alone, 1};
    group.assign(1, alone);
    while (next != end && rows[next].joined())
      group.push_back(memberAt(next++));
    return item = group;
  }

  /// Goes behind the item; its number of actions.
  uint64_t advance() {
    const Segment &loop = list.segments[segment];
    uint64_t actions = next - at;
    at = next;
    if (at != loop.firstRow + loop.rows)
      return actions;
    at = loop.firstRow;
    // The sum may pass zero on its way; what it is added to may not.
    shift += static_cast<uint32_t>(loop.advance);
    if (++times == loop.count) {
      ++segment;
      enterSegment();
    }
    return actions;
  }

  /// The place in the list of a row of the item.
  uint64_t placeOf(const Row &row) const {
    auto isIt = [&](const Member &member) { return &member.row == &row; };
    return at +
           static_cast<uint64_t>(std::find_if(item.begin(), item.end(), isIt) -
                                 item.begin());
  }

private:
  void enterSegment() {
    times = shift = 0;
    if (!atEnd())
      at = list.segments[segment].firstRow;
  }

  Member memberAt(uint64_t i) const {
    Row row = rows[i];
    row.microbatch += shift;
    return {row, wiring.find(row)};
  }

  const Wiring &wiring;
  const RankProgram &list;
  RowReader rows;
  uint64_t segment = 0, at = 0, next = 0;
  uint32_t times = 0;           ///< How often the rows of the segment have run.
  uint32_t shift = 0;           ///< What that adds to their microbatches.
  Member alone{};               ///< The only one of an item,
  std::vector<Member> group;    ///< or all of them.
  std::span<const Member> item; ///< Either.
};

} // namespace ppcc::rt
