// Where receives wait and what buffers they need, against a count that looks at
// every pair of rows; and the bound that inject-comm keeps.
#include "RandomProgram.h"
#include "Rows.h"

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/Report/ReceiveBuffers.h"
#include "ppcc/Transforms/Passes.h"

#include <gtest/gtest.h>

#include <set>

using namespace ppcc;

namespace {

Program inject(const Program &program, CommOrder order,
               std::optional<uint32_t> prefetch) {
  SourceManager sources(llvm::vfs::getRealFileSystem());
  DiagnosticEngine diags(
      [](const Diagnostic &found) { ADD_FAILURE() << found.message; });
  return *injectComm(program, {order, {}, prefetch}, diags, sources);
}

/// A receive as the slow count sees it.
struct Receive {
  ActionId row, reader; ///< The reader is the first row of an item.
  std::tuple<uint32_t, uint32_t, uint32_t, uint8_t> edge;
};

std::vector<Receive> receivesOf(const Program &program, RankId rank) {
  std::vector<Receive> receives;
  ActionId end = program.end(rank);
  for (ActionId row = program.begin(rank); row != end; ++row.value) {
    if (program.kindOf(row).kindClass != KindClass::Recv)
      continue;
    Action recv = program[row];
    uint8_t slotBit = program.kindOf(row).defines;
    ActionId reader = end;
    for (ActionId item = row; item != end; item = program.groupEnd(item, rank))
      for (ActionId id = item; id != program.groupEnd(item, rank); ++id.value)
        if (Action action = program[id]; program.kindOf(id).isCompute() &&
                                         action.pipe == recv.pipe &&
                                         action.stage == recv.stage &&
                                         action.microbatch == recv.microbatch &&
                                         (program.kindOf(id).defines & slotBit))
          reader = std::min(reader, item);
    receives.push_back(
        {row,
         reader,
         {recv.pipe.value, recv.peer.value, recv.stage.value, slotBit}});
  }
  return receives;
}

/// Checks the program, and that no more than `bound` items of each edge wait.
void expectCounted(const Program &program, std::optional<uint32_t> bound) {
  ProgramIndex index(program);
  ReceiveBuffers buffers(program, index);
  std::vector<ActionId> waits;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint8_t>, uint32_t> edges;
  for (uint32_t i = 0; i != program.numRanks(); ++i) {
    uint32_t most = 0;
    auto receives = receivesOf(program, RankId(i));
    for (const Receive &last : receives) {
      waits.push_back(last.reader);
      uint32_t held = 0, heldByEdge = 0;
      std::set<ActionId> items;
      for (const Receive &other : receives) {
        if (other.row > last.row || other.reader < last.row)
          continue;
        ++held;
        if (other.edge == last.edge) {
          ++heldByEdge;
          items.insert(other.reader);
        }
      }
      most = std::max(most, held);
      edges[last.edge] = std::max(edges[last.edge], heldByEdge);
      if (bound)
        EXPECT_LE(items.size(), *bound) << cell(program, program[last.row]);
    }
    EXPECT_EQ(buffers.peakBuffers(RankId(i)), most);
  }
  EXPECT_EQ(buffers.waits(), llvm::ArrayRef(waits));
  for (size_t i = 0; i != buffers.edges().edges().size(); ++i) {
    const Edge &edge = buffers.edges().edges()[i];
    auto counted = edges.find(
        {edge.pipe.value, edge.from.value, edge.to.value, edge.slotBit});
    EXPECT_EQ(buffers.peakBuffers(i),
              counted == edges.end() ? 0 : counted->second);
  }
}

TEST(ReceiveBuffers, AreThoseOfASlowCount) {
  for (unsigned seed = 0; seed != 300; ++seed) {
    SCOPED_TRACE(seed);
    Program program = RandomProgram(seed, 1).program;
    for (CommOrder order :
         {CommOrder::Sweep, CommOrder::ReadyTime, CommOrder::Late})
      expectCounted(inject(program, order, std::nullopt), std::nullopt);
  }
}

TEST(Prefetch, KeepsItsBound) {
  for (unsigned seed = 0; seed != 500; ++seed)
    for (uint32_t bound : {1, 2, 3})
      for (CommOrder order :
           {CommOrder::Sweep, CommOrder::ReadyTime, CommOrder::Late}) {
        SCOPED_TRACE(fmt::format("seed {}, bound {}", seed, bound));
        Program program = RandomProgram(seed, 1).program;
        Program bounded = inject(program, order, bound);
        // `late` keeps the order of the senders, whatever the bound.
        expectCounted(bounded, order == CommOrder::Late ? std::nullopt
                                                        : std::optional(bound));
        EXPECT_TRUE(Analyses(bounded).messages().isInOrder());
        EXPECT_EQ(bounded.size(), inject(program, order, std::nullopt).size());
      }
}

TEST(ReceiveBuffers, TakeWhatStandsTwiceOrNowhere) {
  Program program = programFromRows({"0F0 0SEND_F0", "1RECV_F0 1RECV_F0 1F0"});
  program.editRows().set(ActionId(1), [&] {
    Action send = program[ActionId(1)];
    send.peer = StageId(1);
    return send;
  }());
  for (uint32_t row : {2, 3}) {
    Action recv = program[ActionId(row)];
    recv.peer = StageId(0);
    program.editRows().set(ActionId(row), recv);
  }
  ProgramIndex index(program);
  ReceiveBuffers buffers(program, index);
  EXPECT_EQ(buffers.waits(),
            llvm::ArrayRef({ActionId(4), program.end(RankId(1))}));
  EXPECT_EQ(buffers.peakBuffers(RankId(0)), 0u);
  EXPECT_EQ(buffers.peakBuffers(RankId(1)), 1u);
}

} // namespace
