// The groups of rows in constant time.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// O(actions) to make, 4 bytes an action where there are groups. It does not
/// follow changes of the program.
class GroupIndex {
public:
  explicit GroupIndex(const Program &program) {
    if (llvm::none_of(program.rows(),
                      [&](ActionId row) { return program.joined(row); }))
      return;
    others.resize(program.size());
    for (RankId rank : program.ranks())
      for (auto [begin, end] : program.items(rank)) {
        std::fill(others.begin() + begin.value, others.begin() + end.value,
                  begin);
        others[begin.value] = end;
      }
  }

  /// Whether any rows are joined.
  bool hasGroups() const { return !others.empty(); }
  /// The group that holds the row; itself where it is by itself.
  RowRange operator[](ActionId row) const {
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
