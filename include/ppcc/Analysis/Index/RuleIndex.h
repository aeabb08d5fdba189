// What declared actions wait for, what waits for them, and with whom they meet.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// The rules of a program's declared kinds, applied to its rows. All that they
/// speak of is on one rank; only collectives lead to others. Of several rows
/// for the same work the first counts. Nothing is stored for a program without
/// declared kinds; else 4 bytes a row and what the rules ask for. O(actions) to
/// make. It does not follow changes of the program.
class RuleIndex {
public:
  explicit RuleIndex(const Program &program);

  /// The rows of its rank that must have ended before `row` starts, beside
  /// those that fill the slots that it reads. Where a
  /// kind has a cap, those that make room for the ones before `row`, too.
  ArrayRef<ActionId> neededBy(ActionId row) const {
    if (starts.empty())
      return {};
    return ArrayRef(needs).slice(starts[row.value],
                                 starts[row.value + 1] - starts[row.value]);
  }

  /// A row whose rule speaks of actions that the program does not have.
  struct UnmetRule {
    ActionId row;
    uint32_t rule; ///< Of its kind.
  };
  /// In the order of their rows.
  ArrayRef<UnmetRule> unmetRules() const { return unmet; }

  /// The collectives, and whether a row joins one of them.
  size_t numCollectives() const { return collectiveStarts.size() - 1; }
  std::optional<uint32_t> collectiveOf(ActionId row) const {
    auto found = collectiveOfRow.find(row.value);
    return found == collectiveOfRow.end() ? std::nullopt
                                          : std::optional(found->second);
  }
  /// The rows of a collective, one a rank, ascending.
  ArrayRef<ActionId> members(uint32_t collective) const {
    return ArrayRef(memberRows)
        .slice(collectiveStarts[collective],
               collectiveStarts[collective + 1] - collectiveStarts[collective]);
  }

private:
  using Edges = std::vector<std::pair<ActionId, ActionId>>;

  void addNeeds(const Program &program);
  void addCaps(const Program &program, Edges &edges);
  void addCollectives(const Program &program);

  std::vector<uint32_t> starts; ///< Of each row, in `needs`.
  std::vector<ActionId> needs;
  std::vector<UnmetRule> unmet;
  DenseMap<uint32_t, uint32_t> collectiveOfRow;
  std::vector<uint32_t> collectiveStarts{0};
  std::vector<ActionId> memberRows;
};

} // namespace ppcc
