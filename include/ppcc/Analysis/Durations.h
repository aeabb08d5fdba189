// How long each action of a program takes.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

/// The costs of a program, with what its model leaves out filled in: a kind
/// that fills one slot takes one unit, one that fills several takes what the
/// kinds of the single slots take, and an edge between ranks takes no time.
/// O(kinds * stages + settings) to make; it does not follow changes of the
/// program.
class Durations {
public:
  /// No sum of times in a program that fits() is larger.
  static constexpr Time maxSum = std::numeric_limits<Time>::max() / 4;

  explicit Durations(const Program &program);

  /// The time of a compute action by itself; messages take `latency` instead.
  Time of(const Action &action) const {
    return table[action.kind.value * stride +
                 (stride == 1
                      ? 0
                      : firstStage[action.pipe.value] + action.stage.value)];
  }
  /// The time of the compute actions in the rows from `begin` to `end`, an
  /// action or a whole group.
  Time of(const Program &program, ActionId begin, ActionId end) const;

  /// Whether all actions and this many messages, one after another, take at
  /// most maxSum, so that times can be added without a check. O(actions).
  bool fits(const Program &program, uint64_t messages) const;

  std::optional<Time> overlap; ///< Of a whole group; else its members' sum.
  Time latency = 0;            ///< Of an edge between ranks.

private:
  void apply(const CostSetting &setting, const Program &program);

  std::vector<size_t> firstStage; ///< Of each pipe, in the numbering of all.
  size_t stride = 1; ///< Stages of all pipes; 1 when the costs are the same on
                     ///< every stage.
  std::vector<Time> table; ///< By kind and stage.
};

} // namespace ppcc
