// Makes one batch of all messages between two compute actions, where that is
// safe.
#include "Fuse.h"

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/Run/EventGraph.h"

using namespace ppcc;

namespace {

/// Under one queue a rank, or one stream, batches of neighbours add no
/// deadlock: what a rank does after a batch reaches others by messages that
/// are queued behind it too. With a stream for each peer it can reach them past
/// the batch, on another stream, and the batch may wait for just that.
struct Batches {
  const FusePlan &plan;

  /// What cannot be judged, or hangs whatever is taken apart, stays as it is
  /// for Verify to report.
  Program run() const {
    if (!messages.isWhole() || hasMixedGroup())
      return program;
    BitVector batchStarts(program.size()); // Rows that begin a batch.
    for (unsigned round = 0; round != maxRounds; ++round) {
      Program fused = withBatches(batchStarts);
      auto before = batchStarts.count();
      if (!deadlocks(fused, batchStarts))
        return fused;
      if (batchStarts.count() == before)
        break;
    }
    return program;
  }

  /// Each takes O(actions).
  static constexpr unsigned maxRounds = 16;

  bool hasMixedGroup() const {
    return llvm::any_of(program.rows(), [&](ActionId row) {
      return program.joined(row) &&
             program.kindOf(row).isCompute() !=
                 program.kindOf(ActionId(row.value - 1)).isCompute();
    });
  }

  /// Neighbouring messages in batches that end before each row of `apart`.
  Program withBatches(const BitVector &batchStarts) const {
    Rows result = program.allRows();
    for (RankId rank : program.ranks()) {
      PhaseId phase;
      bool afterMessage = false;
      for (ActionId row : program.rows(rank)) {
        bool isMessage = !program.kindOf(row).isCompute();
        if (isMessage) {
          Action action = program[row];
          action.joined = afterMessage && !batchStarts.test(row.value);
          if (action.joined)
            action.phase = phase;
          phase = action.phase;
          result.set(row, action);
        }
        afterMessage = isMessage;
      }
    }
    return program.withRows(std::move(result));
  }

  /// Whether `fused` hangs; `apart` then gets members of batches on the
  /// shortest cycle of waits.
  bool deadlocks(const Program &fused, BitVector &batchStarts) const {
    bool found = false;
    for (const Transport &transport : plan.transports) {
      if (transport.layout == QueueLayout::One ||
          transport.layout == QueueLayout::Stream)
        continue; // Batches add no deadlock there.
      EventGraph graph(fused, index, &messages, {&transport});
      if (graph.run())
        continue;
      found = true;
      auto cycle = graph.shortestCycle();
      if (!splitBatches(fused, cycle, /*onlyCauses=*/true, batchStarts))
        splitBatches(fused, cycle, /*onlyCauses=*/false, batchStarts);
    }
    return found;
  }

  /// Adds the members of batches on a cycle of waits to `apart`: of those
  /// where one member is waited for and another waits, or of all. False when
  /// there are none.
  static bool splitBatches(const Program &fused,
                           ArrayRef<EventGraph::BlockedAction> cycle,
                           bool onlyCauses, BitVector &batchStarts) {
    bool found = false;
    ActionId awaited = cycle.back().need.row;
    for (const EventGraph::BlockedAction &block : cycle) {
      uint32_t end = block.unit + 1;
      while (end != fused.size() && fused.joined(ActionId(end)) &&
             !fused.kindOf(ActionId(end)).isCompute())
        ++end;
      bool isCause = awaited.value >= block.unit && awaited.value < end &&
                     awaited != block.blocked;
      awaited = block.need.row;
      if (end == block.unit + 1 || (onlyCauses && !isCause))
        continue;
      batchStarts.set(block.unit + 1, end);
      found = true;
    }
    return found;
  }

  const Program &program = plan.program;
  // Also of the program with batches: the rows stay where they are.
  const ProgramIndex &index = Analyses(program).index();
  const MessageIndex &messages = Analyses(program).messages();
};

} // namespace

std::optional<Program> ppcc::fuseBatches(const FusePlan &plan) {
  return Batches{plan}.run();
}
