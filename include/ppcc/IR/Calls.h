// The names of the calls that post messages, as Megatron-LM has them.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

/// The names of all styles of calls, by CallStyle: `none`, `exchange`, `ring`.
ArrayRef<StringRef> callStyleNames();
/// The style called `name`.
std::optional<CallStyle> findCallStyle(StringRef name);

/// What a rank does between two calls: an action, a group, or with CallStyle
/// `Ring` also a forward and the backward directly after it in its phase.
struct Step {
  ActionId begin, end;
  uint8_t slots = 0; ///< Of what it makes, those that stages hand on; none for
                     ///< messages, and for W.
};

/// The step that begins at `row`.
Step stepAt(const Program &program, RankId rank, ActionId row, CallStyle style);

/// Tells the names of the calls of one rank.
///
/// A call is a group of sends and receives, a batch; with a style also a single
/// one. With `Ring` its name follows from the steps before and after it,
/// otherwise from what it holds. O(rows of the rank) for all calls together.
class CallNames {
public:
  CallNames(const Program &program, RankId rank)
      : CallNames(program, rank, program.calls()) {}
  CallNames(const Program &program, RankId rank, CallStyle style)
      : program(program), rank(rank), style(style),
        nextRow(program.begin(rank)), lookaheadRow(program.begin(rank)) {}

  /// The name of the rows from `begin` to `end`: `send_forward`, or `batch`
  /// when there is no such call. Empty for what is no call. Calls are asked for
  /// in the order of the rows.
  StringRef of(ActionId begin, ActionId end);

private:
  /// The slots of the last step before `row`, and of the first from `row` on;
  /// none at the ends of the rank.
  uint8_t slotsBefore(ActionId row);
  uint8_t slotsFrom(ActionId row);
  unsigned ringCall(uint8_t before, uint8_t after, unsigned contents) const;

  const Program &program;
  RankId rank;
  CallStyle style;
  ActionId nextRow, lookaheadRow; ///< The rows before them have been looked at.
  uint8_t lastSlots = 0, nextSlots = 0;
};

} // namespace ppcc
