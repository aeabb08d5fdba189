// Runs the compute actions of all ranks side by side, in any order that the
// data allows.
#pragma once

#include "ppcc/Analysis/ProgramIndex.h"

namespace ppcc {

/// The next item of each rank, an action or a group, and the time at which the
/// last of its inputs from other stages came. What an action needs of its own
/// stage runs before it on its rank, which is not checked here. 16 bytes a pair
/// of stage and microbatch, 24 with skip edges; O(actions + messages) over the
/// whole run.
class Inboxes {
public:
  Inboxes(const Program &program, const ProgramIndex &index);

  /// The item that `rank` runs next: its rows, messages between items passed
  /// over. Both are end(rank) when there is none.
  ActionId begin(RankId rank) const { return heads[rank.value].begin; }
  ActionId end(RankId rank) const { return heads[rank.value].end; }
  bool done(RankId rank) const { return begin(rank) == program.end(rank); }

  /// When the inputs of the next item have all come; nothing before that, or
  /// when there is no such item.
  std::optional<Time> ready(RankId rank);
  /// Goes to the item behind the next one.
  void advance(RankId rank);

  /// Counts the inputs of all stages and microbatches, Output and InputGrad
  /// apart; those of one slot share a number.
  size_t numInputs() const { return lasts.size(); }
  size_t inputOf(PipeId pipe, StageId reader, uint32_t microbatch,
                 uint8_t slotBit) const {
    const Pipe &info = program.pipe(pipe);
    size_t pair = firstPair[pipe.value] +
                  size_t(reader.value) * info.numMicrobatches +
                  (microbatch - info.firstMicrobatch);
    return slotBit == slot::Output ? pair : pair + numPairs;
  }

  /// Hands one input of `reader` to it. Waiting ranks do not hear of it: ask
  /// ready() of the reader's rank.
  void deliver(PipeId pipe, StageId reader, uint32_t microbatch,
               uint8_t slotBit, Time at) {
    deliver(inputOf(pipe, reader, microbatch, slotBit), at);
  }
  /// The same for the input with this number.
  void deliver(size_t input, Time at) {
    lasts[input] = std::max(lasts[input], at);
    if (!come.empty())
      ++come[input];
  }

  /// When the last of an input came; 0 before any did.
  Time lastOf(size_t input) const { return std::max<Time>(lasts[input], 0); }

  /// The row of the next item whose inputs have not all come, and the slot that
  /// is missing; no slot when all have come since ready() was last asked. Call
  /// it when that gave nothing.
  std::pair<ActionId, uint8_t> blocked(RankId rank) const;

private:
  struct Head {
    ActionId begin, end;
    ActionId member; ///< The first row whose inputs have not all come.
    Time ready = 0;  ///< When those of the rows before it had.
  };
  /// Whether inputs of the slot have not come yet. WeightGrad has none.
  bool misses(const Action &action, uint8_t slotBit) const;
  void set(RankId rank, ActionId begin);

  const Program &program;
  const ProgramIndex &index;
  std::vector<size_t> firstPair; ///< Of each pipe, in the numbering of all.
  size_t numPairs = 0;           ///< Of stage and microbatch.
  /// By inputOf(): when the last came, or -1, and, where stages have several,
  /// how many did.
  std::vector<Time> lasts;
  std::vector<uint32_t> come;
  std::vector<Head> heads;
};

} // namespace ppcc
