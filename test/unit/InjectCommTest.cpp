// inject-comm against the lists that PyTorch and d9d make, and at its limits.
#include "Conformance.h"

#include "ppcc/Transforms/Passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ppcc;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

struct Injected {
  std::optional<Program> program;
  std::vector<std::string> errors;
};

Injected inject(const Program &program, CommOrder order = CommOrder::Sweep) {
  Injected result;
  SourceManager sources(llvm::vfs::getRealFileSystem());
  DiagnosticEngine diags([&](const Diagnostic &diagnostic) {
    result.errors.push_back(
        fmt::format("{}: {}", diagnostic.info().code, diagnostic.message));
  });
  result.program = injectComm(program, {order}, diags, sources);
  return result;
}

std::string injectedText(const Program &program) {
  Injected result = inject(program);
  return result.program ? emitted("actions", *result.program)
                        : result.errors.front();
}

void expectEqualLists(llvm::StringRef file, size_t expectedCases) {
  size_t cases = 0;
  forEachCase(file, [&](const llvm::json::Object &object) {
    ++cases;
    EXPECT_EQ(injectedText(programFromRows(rowsOf(object, "compute"))),
              actionsText(rowsOf(object, "comms")));
  });
  EXPECT_EQ(cases, expectedCases);
}

TEST(InjectComm, SweepEqualsPyTorch) { expectEqualLists("pytorch.jsonl", 44); }
TEST(InjectComm, SweepEqualsD9d) { expectEqualLists("d9d.jsonl", 40); }

TEST(InjectComm, NoneLeavesTheProgram) {
  Program program = programFromRows({"0F0 0B0", "1F0 1B0"});
  Injected result = inject(program, CommOrder::None);
  ASSERT_TRUE(result.program);
  EXPECT_EQ(emitted("actions", *result.program),
            "rank 0: 0F0 0B0\nrank 1: 1F0 1B0\n");
}

TEST(InjectComm, StagesOfOneRankHandOverLocally) {
  EXPECT_EQ(injectedText(programFromRows({"0F0 1F0 1B0 0B0"})),
            "rank 0: 0F0 1F0 1B0 0B0\n");
}

TEST(InjectComm, OneMessageForEachReaderOfASkipEdge) {
  Program program = programFromRows({"0F0 0B0", "1F0 1B0", "2F0 2B0"});
  program.editHead().pipes[0].skipEdges = {{StageId(0), StageId(2)}};
  EXPECT_EQ(injectedText(program),
            "rank 0: 0F0 0SEND_F0 0SEND_F0>2 0RECV_B0<2 0RECV_B0 0B0\n"
            "rank 1: 1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0\n"
            "rank 2: 2RECV_F0<0 2RECV_F0 2F0 2B0 2SEND_B0>0 2SEND_B0\n");
}

TEST(InjectComm, AGroupReleasesItsResultsAtItsEnd) {
  Program program =
      programFromRows({"0F0 0F1 0B0 0B1", "1F0 (1F1;1B0)OVERLAP_F_B 1B1"});
  EXPECT_EQ(injectedText(program),
            "rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
            "rank 1: 1RECV_F0 1F0 1RECV_F1 (1F1;1B0)OVERLAP_F_B 1SEND_B0 1B1 "
            "1SEND_B1\n");
}

TEST(InjectComm, MessagesCarryPeerPhaseAndSite) {
  Program program = programFromRows({"0F0", "1F0"});
  program.editHead().hasBackward = false;
  PhaseId first = program.editHead().phase("first"),
          second = program.editHead().phase("second");
  program.editHead().files.push_back({"a.pp"});
  program.editHead().sites.push_back({0, 3, 5, SiteId()});
  program.editHead().sites.push_back({0, 4, 5, SiteId()});
  Action producer = program[ActionId(0)], consumer = program[ActionId(1)];
  producer.phase = first, producer.site = SiteId(1);
  consumer.phase = second, consumer.site = SiteId(2);
  program.editRows().set(ActionId(0), producer);
  program.editRows().set(ActionId(1), consumer);

  Injected result = inject(program);
  ASSERT_TRUE(result.program);
  Action send = (*result.program)[ActionId(1)],
         recv = (*result.program)[ActionId(2)];
  EXPECT_EQ(cell(*result.program, send), "0SEND_F0");
  EXPECT_EQ(send.peer, StageId(1));
  EXPECT_EQ(send.phase, first);
  EXPECT_EQ(send.site, SiteId(1));
  EXPECT_EQ(cell(*result.program, recv), "1RECV_F0");
  EXPECT_EQ(recv.peer, StageId(0));
  EXPECT_EQ(recv.phase, second);
  EXPECT_EQ(recv.site, SiteId(1));
}

TEST(InjectComm, AReceiveBehindTheLastActionHasItsPhase) {
  // Rank 0 is through before stage 1 sends it the gradient that nothing reads.
  Program program = programFromRows({"0F0", "1F0 1B0"});
  Action last = program[ActionId(0)];
  last.phase = program.editHead().phase("only");
  program.editRows().set(ActionId(0), last);
  Injected result = inject(program);
  ASSERT_TRUE(result.program);
  ActionId recv(result.program->end(RankId(0)).value - 1);
  EXPECT_EQ(cell(*result.program, (*result.program)[recv]), "0RECV_B0");
  EXPECT_EQ((*result.program)[recv].phase, last.phase);
}

TEST(InjectComm, RefusesAProgramWithCommunication) {
  EXPECT_THAT(inject(programFromRows({"0F0 0SEND_F0", "1RECV_F0 1F0"})).errors,
              ElementsAre(HasSubstr("E0850: the program already has "
                                    "communication: rank 0 runs `0SEND_F0")));
}

TEST(InjectComm, RefusesAProgramThatWaitsForItself) {
  EXPECT_THAT(inject(programFromRows({"0B0 0F0", "1F0 1B0"})).errors,
              ElementsAre("E0851: deadlock: rank 0 waits in `0B0` for the "
                          "gradient of stage 1, microbatch 0, from rank 1"));
}

TEST(InjectComm, RefusesMorePairsThanActions) {
  Program program = programFromRows({"0F0", "1F0"});
  program.editHead().pipes[0].numMicrobatches = Program::maxMicrobatches;
  EXPECT_THAT(inject(program).errors,
              ElementsAre(HasSubstr("E0705: 2 actions")));
}

TEST(InjectComm, RefusesMoreMessagesThanFit) {
  constexpr uint32_t stages = 1500, microbatches = 300;
  Program program;
  program.editHead().numRanks = stages;
  program.editHead().pipes.emplace_back();
  program.editHead().pipes[0].numMicrobatches = microbatches;
  for (uint32_t stage = 0; stage != stages; ++stage) {
    program.editHead().pipes[0].rankOfStage.push_back(RankId(stage));
    for (uint32_t to = stage + 2; to < stages; ++to)
      program.editHead().pipes[0].skipEdges.push_back(
          {StageId(stage), StageId(to)});
  }
  for (uint32_t stage = 0; stage != stages; ++stage) {
    program.editRows().beginRank();
    for (uint32_t microbatch = 0; microbatch != microbatches; ++microbatch) {
      Action action;
      action.stage = StageId(stage);
      action.microbatch = microbatch;
      program.editRows().append(action);
    }
  }
  EXPECT_THAT(inject(program).errors,
              ElementsAre(HasSubstr("E0852: 675000000 actions and messages")));
}

TEST(InjectComm, OrdersHaveNames) {
  for (const CommOrderInfo &info : commOrders())
    EXPECT_EQ(findCommOrder(info.name), info.order);
  EXPECT_EQ(findCommOrder("sweeps"), std::nullopt);
}

} // namespace
