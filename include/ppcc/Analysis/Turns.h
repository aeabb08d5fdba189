// Runs a program in turns, as PyTorch's _add_send_recv and d9d do when they
// place messages: ranks are visited one after another, each visit runs one
// item.
#pragma once

#include "ppcc/Analysis/ProgramIndex.h"
#include "ppcc/Analysis/TorchSteps.h"

#include "llvm/ADT/BitVector.h"

namespace ppcc {

/// A result of a stage for a microbatch.
struct StageResult {
  PipeId pipe;
  StageId stage;
  uint32_t microbatch = 0;
  uint8_t slotBit = 0;

  bool operator==(const StageResult &) const = default;
};

/// The run of a program's compute actions in turns. In a turn a rank runs its
/// next action or group, if the results that it reads have come, or its next
/// step of PyTorch. Messages take no turns. O(actions + edges).
class Turns {
public:
  /// `steps` are by rank, from torchSteps(); empty for none. The index must
  /// fit.
  Turns(const Program &program, const ProgramIndex &index,
        std::vector<std::vector<TorchStep>> steps = {});

  /// Runs until no rank can go on; true when all are at their end. In order it
  /// calls `visitor.item(rank, begin, end)` for the rows of each action or
  /// group, then `visitor.result(row, rank, slotBit, reader)` for each of its
  /// results that a stage on another rank reads, then `visitor.itemDone(rank,
  /// begin, end)`; and `visitor.step(rank, number)` for each step, by its
  /// position.
  template <class Visitor> bool run(Visitor &visitor) {
    for (RankId rank : program.ranks())
      start(rank);
    // One pass over the set is one sweep: a rank that becomes ready behind the
    // scan waits for the next.
    for (int rank = ready.find_first(); rank != -1;) {
      visit(RankId(rank), visitor);
      rank = ready.find_next(rank);
      if (rank == -1)
        rank = ready.find_first();
    }
    return !firstStuck();
  }

  /// Whether the result has come.
  bool has(const StageResult &result) const {
    return made[pairOf(result.pipe, result.stage, result.microbatch)] &
           result.slotBit;
  }

  /// A rank that cannot go on.
  struct Stuck {
    RankId rank;
    ActionId row;         ///< What it would run.
    StageResult waitsFor; ///< What has not come.
  };
  /// The first rank that is not at its end, after run().
  std::optional<Stuck> firstStuck() const;

private:
  /// The item that a rank runs next: a group's members are checked one after
  /// another, each input once.
  struct Head {
    uint32_t begin = 0;
    uint32_t member = 0;  ///< The first row whose inputs have not all come.
    uint32_t input = 0;   ///< Its inputs that have come.
    StageResult waitsFor; ///< The next one.
    uint32_t step = 0;    ///< The first step that has not been run.
  };

  size_t pairOf(PipeId pipe, StageId stage, uint32_t microbatch) const {
    const Pipe &info = program.pipe(pipe);
    return firstPair[pipe.value] + size_t(stage.value) * info.numMicrobatches +
           (microbatch - info.firstMicrobatch);
  }

  bool atEnd(RankId rank) const {
    return heads[rank.value].begin == program.end(rank).value;
  }
  bool atStep(RankId rank) const {
    const Head &head = heads[rank.value];
    return !steps.empty() && head.step != steps[rank.value].size() &&
           steps[rank.value][head.step].before.value == head.begin;
  }
  std::optional<StageResult> inputOf(const Action &action,
                                     uint32_t number) const;
  bool headIsReady(RankId rank);
  void start(RankId rank);
  void advance(RankId rank, ActionId end);
  void wake(RankId rank) {
    if (atStep(rank) || (!atEnd(rank) && headIsReady(rank)))
      ready.set(rank.value);
  }

  template <class Visitor> void visit(RankId rank, Visitor &visitor) {
    ready.reset(rank.value);
    if (atStep(rank)) {
      visitor.step(rank, heads[rank.value].step++);
      wake(rank);
      return;
    }
    ActionId begin(heads[rank.value].begin);
    ActionId end = program.groupEnd(begin, rank);
    visitor.item(rank, begin, end);
    for (ActionId row : RowRange{begin, end}) {
      Action action = program[row];
      if (uint8_t slots = program.kindOf(action).defines)
        made[pairOf(action.pipe, action.stage, action.microbatch)] |= slots;
    }
    for (ActionId row : RowRange{begin, end}) {
      Action action = program[row];
      forEachMessage(
          program, index, action, [&](uint8_t slotBit, StageId reader) {
            visitor.result(row, rank, slotBit, reader);
            RankId to = program.rankOfStage(action.pipe, reader);
            if (to != rank && heads[to.value].waitsFor ==
                                  StageResult{action.pipe, action.stage,
                                              action.microbatch, slotBit})
              wake(to);
          });
    }
    visitor.itemDone(rank, begin, end);
    advance(rank, end);
  }

  const Program &program;
  const ProgramIndex &index;
  std::vector<std::vector<TorchStep>> steps;
  std::vector<size_t> firstPair; ///< Of each pipe, in the numbering of all
                                 ///< pairs of stage and microbatch.
  std::vector<uint8_t> made; ///< The slots of each pair that have been filled.
  std::vector<Head> heads;
  llvm::BitVector ready;
};

} // namespace ppcc
