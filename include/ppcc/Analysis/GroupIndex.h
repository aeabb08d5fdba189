// The groups of rows in constant time.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

/// O(actions) to make, 4 bytes an action where there are groups. It does not
/// follow changes of the program.
class GroupIndex {
public:
  explicit GroupIndex(const Program &program) {
    uint32_t size = program.size(), row = 0;
    while (row != size && !program.joined(ActionId(row)))
      ++row;
    if (row == size)
      return;
    others.resize(size);
    for (uint32_t begin = 0, end; begin != size; begin = end) {
      for (end = begin + 1; end != size && program.joined(ActionId(end)); ++end)
        others[end] = ActionId(begin);
      others[begin] = ActionId(end);
    }
  }

  struct Group {
    ActionId from, to;
  };

  /// Whether any rows are joined.
  bool hasGroups() const { return !others.empty(); }
  /// The group that holds the row; itself where it is by itself.
  Group operator[](ActionId row) const {
    if (!hasGroups())
      return {row, ActionId(row.value + 1)};
    if (others[row.value] <= row)
      row = others[row.value];
    return {row, others[row.value]};
  }

private:
  /// Of the first row of an item its end, of the others its first.
  std::vector<ActionId> others;
};

} // namespace ppcc
