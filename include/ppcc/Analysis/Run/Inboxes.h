// Runs the compute actions of all ranks side by side, in any order that the
// data allows: what planning stands on.
#pragma once

#include "ppcc/Analysis/Index/PairNumbering.h"
#include "ppcc/Analysis/Index/ProgramIndex.h"

namespace ppcc {

/// The next item of each rank, an action or a group, and what has come of its
/// inputs from other stages. What an action needs of its own stage runs before
/// it on its rank, which is not checked here. Kinds of which `joins` is true
/// run on all their ranks at once. 32 bytes a pair of stage and microbatch;
/// O(actions + messages) over the whole run.
class Inboxes {
public:
  using Joins = bool (KindInfo::*)() const;
  Inboxes(const Program &program, const ProgramIndex &index,
          Joins joins = &KindInfo::isMove);

  const Program &program;
  const ProgramIndex &index;

  /// The item that `rank` runs next: its rows, messages between items passed
  /// over. Both are end(rank) when there is none.
  ActionId begin(RankId rank) const { return heads[rank.value].begin; }
  ActionId end(RankId rank) const { return heads[rank.value].end; }
  bool done(RankId rank) const { return begin(rank) == program.end(rank); }

  /// Whether there is a next item, its inputs have all come, and no rank that
  /// runs it together with this one has yet to come to it; readyAt() is then
  /// when the last input did.
  bool isReady(RankId rank);
  Time readyAt(RankId rank) const { return heads[rank.value].ready; }
  /// The ranks that run their next items at once, of which `rank` is ready.
  SmallVector<RankId, 2> together(RankId rank) const;
  /// Lets a rank go on that waits for another one alone, when nothing else can:
  /// where lanes cross. Its number, if there is one.
  std::optional<RankId> release();
  /// Goes to the item after the next one.
  void advance(RankId rank);

  /// Hands a result of `producer` to `rank`, which hosts its reader. True when
  /// isReady() of that rank was false for want of it.
  bool deliver(const Action &producer, uint8_t slotBit, StageId reader,
               RankId rank, Time at) {
    size_t input = inputOf(producer.pipe, reader, producer.microbatch, slotBit);
    inputs[input].last = std::max(inputs[input].last, at);
    ++inputs[input].arrived;
    return heads[rank.value].missing == input;
  }

  /// A result that a row of the next item waits for.
  struct Blocked {
    ActionId row;
    uint8_t slotBit = 0; ///< 0 when all have come, but to another rank.
    StageId source{};
  };
  /// The first of them, where isReady() gave false.
  Blocked blocked(RankId rank) const;
  /// Whether what makes the result has run.
  bool hasRun(PipeId pipe, StageId stage, uint32_t microbatch,
              uint8_t slotBit) const {
    auto maker = index.definer(pipe, stage, microbatch, slotBit);
    return maker && *maker < begin(program.rankOf(*maker));
  }

private:
  static constexpr size_t none = ~size_t(0);

  struct Head {
    ActionId begin, end;
    ActionId member;       ///< The first row whose inputs have not all come,
    size_t missing = none; ///< and which of them isReady() did not find.
    Time ready = 0;        ///< When those of the rows before it had.
    bool waits = false;    ///< For another rank that runs it, too.
  };
  struct Input {
    Time last = 0;        ///< When the last of its parts came,
    uint32_t arrived = 0; ///< and of so many.
  };

  /// Numbers the inputs of all stages and microbatches, Output and InputGrad
  /// apart; those of one slot share a number.
  size_t inputOf(PipeId pipe, StageId reader, uint32_t microbatch,
                 uint8_t slotBit) const {
    size_t pair = pairs(pipe, reader, microbatch);
    return slotBit == slot::Output ? pair : pair + pairs.size();
  }
  bool misses(const Action &action, uint8_t slotBit, size_t input) const;
  void set(RankId rank, ActionId begin);
  std::optional<uint32_t> collectiveOf(ActionId row) const {
    return (program.kindOf(row).*joins)() ? index.rules().collectiveOf(row)
                                          : std::nullopt;
  }

  const Joins joins;
  std::vector<uint32_t>
      awaited; ///< By collective: ranks that have yet to come.
  const PairNumbering pairs;
  std::vector<Input> inputs;
  std::vector<Head> heads;
};

} // namespace ppcc
