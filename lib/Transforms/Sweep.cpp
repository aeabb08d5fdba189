// Places messages as PyTorch's _add_send_recv and d9d do: ranks are visited in
// turn, each visit runs one item.
#include "CommPlan.h"
#include "Prefetch.h"

#include "llvm/ADT/BitVector.h"

using namespace ppcc;

namespace {

/// A result of a stage for a microbatch.
struct Input {
  PipeId pipe;
  StageId stage;
  uint32_t microbatch = 0;
  uint8_t slotBit = 0;

  bool operator==(const Input &) const = default;
};

class Sweep {
public:
  explicit Sweep(CommPlan &plan)
      : plan(plan), program(plan.program), writer(plan.writer),
        heads(program.ranksBegun()), ready(program.ranksBegun()) {
    size_t pairs = 0;
    for (const Pipe &pipe : program.pipes) {
      firstPair.push_back(pairs);
      pairs += size_t(pipe.numStages()) * pipe.numMicrobatches;
    }
    made.resize(pairs);
    if (plan.prefetch)
      prefetch.emplace(program, plan.index, *plan.prefetch);
  }

  bool run() {
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank)
      start(RankId(rank));
    // One pass over the set is one sweep: a rank that becomes ready behind the
    // scan waits for the next.
    for (int rank = ready.find_first(); rank != -1;) {
      visit(RankId(rank));
      rank = ready.find_next(rank);
      if (rank == -1)
        rank = ready.find_first();
    }
    return allDone();
  }

private:
  /// The item that a rank runs next: a group's members are checked one after
  /// another, each input once.
  struct Head {
    uint32_t member = 0; ///< The first row whose inputs have not all come.
    uint32_t input = 0;  ///< Its inputs that have come.
    Input waitsFor;      ///< The next one.
  };

  uint8_t &slotsOf(PipeId pipe, StageId stage, uint32_t microbatch) {
    const Pipe &info = program.pipes[pipe.value];
    return made[firstPair[pipe.value] +
                size_t(stage.value) * info.numMicrobatches +
                (microbatch - info.firstMicrobatch)];
  }

  /// The input with this number that an action reads from other stages, or
  /// nothing beyond the last.
  std::optional<Input> inputOf(const Action &action, uint32_t number) const {
    std::optional<Input> found;
    forEachSlot(program.kinds[action.kind].defines, [&](uint8_t slotBit) {
      auto sources = plan.index.sourcesOf(action.pipe, action.stage, slotBit);
      if (!found && number < sources.size())
        found = Input{action.pipe, sources[number], action.microbatch, slotBit};
      number -= sources.size();
    });
    return found;
  }

  /// Whether all inputs of the head of `rank` have come; else Head::waitsFor is
  /// the first that has not.
  bool headIsReady(RankId rank) {
    Head &head = heads[rank.value];
    uint32_t end = program.groupEnd(writer.next(rank), rank).value;
    for (; head.member != end; ++head.member, head.input = 0) {
      Action action = program[ActionId(head.member)];
      while (auto input = inputOf(action, head.input)) {
        if (!(slotsOf(input->pipe, input->stage, input->microbatch) &
              input->slotBit)) {
          head.waitsFor = *input;
          return false;
        }
        ++head.input;
      }
    }
    return true;
  }

  /// Looks at a new head.
  void start(RankId rank) {
    heads[rank.value] = {writer.next(rank).value, 0, {}};
    wake(rank);
  }

  void wake(RankId rank) {
    if (!writer.done(rank) && headIsReady(rank))
      ready.set(rank.value);
  }

  void visit(RankId rank) {
    ready.reset(rank.value);
    uint32_t first = writer.next(rank).value;
    writer.copyItem(rank);
    uint32_t end = writer.next(rank).value;
    for (uint32_t row = first; row != end; ++row) {
      Action action = program[ActionId(row)];
      slotsOf(action.pipe, action.stage, action.microbatch) |=
          program.kinds[action.kind].defines;
    }
    for (uint32_t row = first; row != end; ++row) {
      Action action = program[ActionId(row)];
      forEachMessage(
          program, plan.index, action, [&](uint8_t slotBit, StageId reader) {
            if (!prefetch ||
                prefetch->mayGo(ActionId(row), action, slotBit, reader))
              writer.message(action, rank, slotBit, reader);
            RankId to = program.rankOfStage(action.pipe, reader);
            if (to != rank &&
                heads[to.value].waitsFor == Input{action.pipe, action.stage,
                                                  action.microbatch, slotBit})
              wake(to);
          });
    }
    // Behind the results of the item, which other ranks may wait for.
    if (prefetch)
      prefetch->hasRun(
          rank, ActionId(first), ActionId(end),
          [&](ActionId producer, uint8_t slotBit, StageId reader, Time) {
            writer.message(program[producer], program.rankOf(producer), slotBit,
                           reader);
          });
    start(rank);
  }

  bool allDone() {
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
      if (writer.done(RankId(rank)))
        continue;
      reportStuck(RankId(rank));
      return false;
    }
    return true;
  }

  void reportStuck(RankId rank) {
    const Head &head = heads[rank.value];
    reportStuckOn(plan, rank, ActionId(head.member), head.waitsFor.slotBit,
                  head.waitsFor.stage);
  }

  CommPlan &plan;
  const Program &program;
  CommWriter &writer;
  std::vector<size_t> firstPair; ///< Of each pipe, in the numbering of all
                                 ///< pairs of stage and microbatch.
  std::vector<uint8_t> made; ///< The slots of each pair that have been filled.
  std::vector<Head> heads;
  llvm::BitVector ready;
  std::optional<Prefetch> prefetch;
};

} // namespace

bool ppcc::planSweep(CommPlan &plan) { return Sweep(plan).run(); }
