// The order `ready-time` against a checker that runs its lists in the strictest
// way there is.
#include "RandomProgram.h"
#include "Rows.h"

#include "ppcc/Transforms/Passes.h"

#include <gtest/gtest.h>

#include <set>

using namespace ppcc;

namespace {

Program readyTime(const Program &program, std::optional<uint32_t> prefetch) {
  SourceManager sources(llvm::vfs::getRealFileSystem());
  DiagnosticEngine diags(
      [](const Diagnostic &found) { ADD_FAILURE() << found.message; });
  return *injectComm(program, {CommOrder::ReadyTime, {}, prefetch}, diags,
                     sources);
}

/// Runs each list strictly in order, the two ends of a message at one moment:
/// the lists come to their end exactly when they are the projections of one
/// global order of actions and messages.
class OneOrder {
public:
  explicit OneOrder(const Program &program) : program(program) {
    for (uint32_t rank = 0; rank != program.numRanks(); ++rank)
      next.push_back(program.begin(RankId(rank)));
  }

  /// What the ranks that do not come to their end stop at.
  std::string run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t rank = 0; rank != program.numRanks(); ++rank)
        moved |= step(RankId(rank));
    }
    std::string stuck;
    for (uint32_t rank = 0; rank != program.numRanks(); ++rank)
      if (next[rank] != program.end(RankId(rank)))
        stuck += cell(program, program[next[rank]]) + " ";
    return stuck;
  }

  size_t messages = 0;

private:
  /// A result of a stage, and the stage to which it has come.
  using Data = std::tuple<PipeId, StageId, StageId, uint32_t, uint8_t>;

  static Data data(const Action &action, StageId from, StageId to,
                   uint8_t slotBit) {
    return {action.pipe, from, to, action.microbatch, slotBit};
  }

  /// Whether `reader` has the result of `from`: it made it, was sent it, or has
  /// it from another stage of its rank.
  bool has(const Action &reader, StageId from, uint8_t slotBit) const {
    const Pipe &pipe = program.pipes()[reader.pipe.value];
    bool local =
        pipe.rankOfStage[from.value] == pipe.rankOfStage[reader.stage.value];
    return known.count(
        data(reader, from, local ? from : reader.stage, slotBit));
  }

  bool step(RankId rank) {
    if (next[rank.value] == program.end(rank))
      return false;
    ActionId id = next[rank.value];
    const KindInfo &info = program.kindOf(id);
    if (info.isCompute())
      return compute(rank, id);
    Action send = program[id];
    RankId peer = program.rankOfStage(send.pipe, send.peer);
    if (info.kindClass != KindClass::Send ||
        next[peer.value] == program.end(peer) ||
        !has(send, send.stage, info.defines))
      return false;
    Action recv = program[next[peer.value]];
    const KindInfo &there = program.kinds()[recv.kind];
    if (there.kindClass != KindClass::Recv || there.defines != info.defines ||
        recv.pipe != send.pipe || recv.microbatch != send.microbatch ||
        recv.stage != send.peer || recv.peer != send.stage)
      return false;
    EXPECT_TRUE(
        known.insert(data(send, send.stage, send.peer, info.defines)).second)
        << "sent twice";
    ++messages;
    ++next[rank.value].value;
    ++next[peer.value].value;
    return true;
  }

  bool compute(RankId rank, ActionId begin) {
    ActionId end = program.groupEnd(begin, rank);
    for (ActionId id = begin; id != end; ++id.value) {
      Action action = program[id];
      const KindInfo &info = program.kinds()[action.kind];
      EXPECT_TRUE(info.isCompute()) << "a message in a group";
      for (uint8_t bit : {slot::Output, slot::InputGrad, slot::WeightGrad}) {
        if ((info.needs & bit) && !has(action, action.stage, bit))
          return false;
        if (info.defines & bit)
          for (StageId source :
               sourcesOf(program.pipes()[action.pipe.value], action.stage, bit))
            if (!has(action, source, bit))
              return false;
      }
    }
    for (ActionId id = begin; id != end; ++id.value)
      for (uint8_t bit : {slot::Output, slot::InputGrad, slot::WeightGrad})
        if (program.kindOf(id).defines & bit)
          known.insert(
              data(program[id], program[id].stage, program[id].stage, bit));
    next[rank.value] = end;
    return true;
  }

  const Program &program;
  std::vector<ActionId> next;
  std::set<Data> known;
};

void expectOneOrder(Program compute,
                    std::optional<uint32_t> prefetch = std::nullopt) {
  Program program = readyTime(compute, prefetch);
  OneOrder order(program);
  EXPECT_EQ(order.run(), "") << emitted("actions", program);
  EXPECT_EQ(compute.size() + 2 * order.messages, program.size());
  EXPECT_EQ(emitted("actions", readyTime(compute, prefetch)),
            emitted("actions", program));
  // The compute actions are those of before.
  for (uint32_t rank = 0; rank != program.numRanks(); ++rank) {
    ActionId before = compute.begin(RankId(rank));
    for (ActionId id = program.begin(RankId(rank));
         id != program.end(RankId(rank)); ++id.value) {
      if (!program.kindOf(id).isCompute())
        continue;
      EXPECT_EQ(cell(program, program[id]), cell(compute, compute[before]));
      EXPECT_EQ(program.joined(id), compute.joined(before));
      ++before.value;
    }
    EXPECT_EQ(before, compute.end(RankId(rank)));
  }
}

TEST(ReadyTime, ListsAreProjectionsOfOneOrder) {
  for (unsigned seed = 0; seed != 1000; ++seed) {
    SCOPED_TRACE(seed);
    expectOneOrder(RandomProgram(seed, 1).program);
  }
}

TEST(ReadyTime, ListsAreProjectionsOfOneOrderWhenCostsAreNothing) {
  for (unsigned seed = 0; seed != 1000; ++seed) {
    SCOPED_TRACE(seed);
    Program program = RandomProgram(seed, 0).program;
    expectOneOrder(program);
    for (CostSetting &setting : program.editHead().costs.settings)
      if (setting.what == Cost::Action || setting.what == Cost::Latency)
        std::fill(setting.values.begin(), setting.values.end(), 0);
    expectOneOrder(program);
  }
}

TEST(ReadyTime, ListsAreProjectionsOfOneOrderWhenReceivesAreBounded) {
  for (unsigned seed = 0; seed != 500; ++seed)
    for (uint32_t prefetch : {1, 2}) {
      SCOPED_TRACE(fmt::format("seed {}, prefetch {}", seed, prefetch));
      expectOneOrder(RandomProgram(seed, seed % 2).program, prefetch);
    }
}

} // namespace
