// Runs a program in turns, as PyTorch's _add_send_recv and d9d do when they
// place messages: ranks are visited one after another, each visit runs one
// item.
#pragma once

#include "ppcc/Analysis/Index/Dependences.h"
#include "ppcc/Analysis/Run/Inboxes.h"
#include "ppcc/Analysis/Run/TorchSteps.h"

namespace ppcc {

/// The run of a program's compute actions in turns. In a turn a rank runs its
/// next action or group, if the results that it reads have come, or its next
/// step of PyTorch. Messages take no turns. O(actions + edges).
class Turns {
public:
  /// `steps` are by rank, from torchSteps(); empty for none. The index must
  /// fit.
  Turns(const Program &program, const ProgramIndex &index,
        std::vector<std::vector<TorchStep>> steps = {})
      : inboxes(program, index), steps(std::move(steps)),
        nextStep(program.ranksBegun()), ready(program.ranksBegun()) {
    assert(index.fits());
  }

  /// Runs until no rank can go on. In order it calls `visitor.item(rank, begin,
  /// end)` for the rows of each action or group, then `visitor.result(row,
  /// rank, slotBit, reader)` for each of its results that a stage on another
  /// rank reads, then `visitor.itemDone(rank, begin, end)`; and
  /// `visitor.step(rank, number)` for each step, by its position. Gives the
  /// first rank that is not at its end, if any.
  template <class Visitor> std::optional<RankId> run(Visitor &visitor) {
    for (RankId rank : inboxes.program.ranks())
      wake(rank);
    // One pass over the set is one sweep: a rank that becomes ready after the
    // scan waits for the next.
    for (int rank = first(); rank != -1;) {
      visit(RankId(rank), visitor);
      rank = ready.find_next(rank);
      if (rank == -1) {
        rank = first();
        ++sweeps;
      }
    }
    for (RankId rank : inboxes.program.ranks())
      if (!inboxes.done(rank))
        return rank;
    return std::nullopt;
  }

  /// How far it has come.
  const Inboxes &state() const { return inboxes; }
  /// How often all ranks were passed over.
  int64_t sweep() const { return sweeps; }

private:
  bool atStep(RankId rank) const {
    size_t step = nextStep[rank.value];
    return !steps.empty() && step != steps[rank.value].size() &&
           steps[rank.value][step].before == inboxes.begin(rank);
  }
  int first() {
    if (auto freed = ready.none() ? inboxes.release() : std::nullopt)
      wake(*freed);
    return ready.find_first();
  }
  void wake(RankId rank) {
    if (atStep(rank) || inboxes.isReady(rank))
      ready.set(rank.value);
  }

  template <class Visitor> void visit(RankId rank, Visitor &visitor) {
    ready.reset(rank.value);
    if (atStep(rank)) {
      visitor.step(rank, nextStep[rank.value]++);
      wake(rank);
      return;
    }
    for (RankId each : inboxes.together(rank))
      runItem(each, visitor);
  }

  template <class Visitor> void runItem(RankId rank, Visitor &visitor) {
    ready.reset(rank.value);
    while (atStep(rank))
      visitor.step(rank, nextStep[rank.value]++);
    const Program &program = inboxes.program;
    ActionId begin = inboxes.begin(rank), end = inboxes.end(rank);
    visitor.item(rank, begin, end);
    for (ActionId row : RowRange{begin, end}) {
      Action action = program[row];
      RankId home = program.rankOfStage(action.pipe, action.stage);
      forEachReader(program, inboxes.index, action,
                    [&](uint8_t slotBit, StageId reader, RankId to) {
                      if (to != home)
                        visitor.result(row, rank, slotBit, reader);
                      if (inboxes.deliver(action, slotBit, reader, to, 0))
                        wake(to);
                    });
    }
    visitor.itemDone(rank, begin, end);
    inboxes.advance(rank);
    wake(rank);
  }

  Inboxes inboxes;
  std::vector<std::vector<TorchStep>> steps;
  std::vector<size_t> nextStep; ///< By rank.
  BitVector ready;
  int64_t sweeps = 0;
};

} // namespace ppcc
