// What formats cannot express, and PyTorch's own order of gradient reductions.
#include "Conformance.h"
#include "ppcc/Emit/Emitter.h"
#include "ppcc/IR/Loops.h"

#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ppcc;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

TEST(Emit, FormatsHaveNames) {
  for (const Emitter &emitter : emitters())
    EXPECT_EQ(findEmitter(emitter.name), &emitter);
  EXPECT_EQ(findEmitter("yaml"), nullptr);
}

TEST(Emit, TorchVersions) {
  EXPECT_EQ(parseTorchVersion("2.9"), (TorchVersion{2, 9}));
  EXPECT_EQ(parseTorchVersion("2.10.1+cpu"), (TorchVersion{2, 10}));
  EXPECT_GT(TorchVersion({2, 10}), TorchVersion({2, 9}));
  for (const char *text :
       {"", "2", "2.", ".9", "two", "2.9x", "-2.9", "99999999999.1"})
    EXPECT_EQ(parseTorchVersion(text), std::nullopt) << text;
}

TEST(Emit, ARankWithoutActionsIsALine) {
  Program program = programFromRows({"0F0", ""});
  program.editHead().hasBackward = false;
  EXPECT_EQ(emitted("actions", program), "rank 0: 0F0\nrank 1:\n");
  EXPECT_THAT(emitted("torch-csv", program), HasSubstr("E1017"));
}

/// Rows with loops of whole groups, some of actions without a microbatch.
Program programWithLoops(std::mt19937 &random) {
  Program program;
  program.editHead().numRanks = 1;
  program.editHead().pipes.push_back({.name = "main"});
  Rows rows;
  rows.beginRank();
  for (int part = random() % 6; part >= 0; --part) {
    ActionId begin(rows.size());
    for (uint32_t i = 0, count = 1 + random() % 5; i != count; ++i) {
      Action action;
      action.kind = KindId(random() % 4);
      action.stage = StageId(random() % 3);
      action.microbatch =
          random() % 4 ? 1000 + random() % 100 : Action::noMicrobatch;
      action.joined = i != 0 && random() % 3 == 0;
      rows.append(action);
    }
    if (random() % 3 != 0)
      rows.loops.push_back({begin, ActionId(rows.size()),
                            uint32_t(1 + random() % 40),
                            int32_t(random() % 21) - 10});
  }
  return program.withEquivalentRows(std::move(rows));
}

TEST(Emit, LoopsDoNotChangeTheDigest) {
  std::mt19937 random(1);
  std::set<std::string> digests;
  for (int i = 0; i != 500; ++i) {
    Program program = programWithLoops(random);
    EXPECT_EQ(digestOf(program), digestOf(unrolled(program)));
    digests.insert(digestOf(program));
  }
  EXPECT_GT(digests.size(), 490u);
}

TEST(Emit, AnotherOrderHasAnotherDigest) {
  std::mt19937 random(2);
  for (int i = 0; i != 500; ++i) {
    Program program = unrolled(programWithLoops(random));
    ActionId a(random() % program.size()), b(random() % program.size());
    Action first = program[a], second = program[b];
    std::string before = digestOf(program);
    std::swap(first.microbatch, second.microbatch);
    program.editRows().set(a, first);
    if (a != b)
      program.editRows().set(b, second);
    EXPECT_EQ(digestOf(program) == before,
              first.microbatch == second.microbatch);
  }
}

TEST(Emit, ReduceGradFollowsTheSendsOfTheLastBackward) {
  Program program = programFromRows(
      {"0F0 0SEND_F0 0RECV_B0 0I0 0W0", "1RECV_F0 1F0 1B0 1SEND_B0"});
  EXPECT_EQ(emitted("torch-csv", program),
            "0F0,0SEND_F0,0RECV_B0,0I0,0WAIT_SEND_F0,0W0,0REDUCE_GRAD,0WAIT_"
            "REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1WAIT_REDUCE_"
            "GRAD,1WAIT_SEND_B0\n");
  EXPECT_EQ(emitted("torch-csv", program, {{2, 14}}),
            "0F0,0SEND_F0,0RECV_B0,0I0,0W0,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,"
            "1SEND_B0,1REDUCE_GRAD\n");
  EXPECT_EQ(emitted("torch-csv", program, {{2, 9}}),
            "0F0,0SEND_F0,0RECV_B0,0I0,0W0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  EXPECT_EQ(emitted("torch-csv-compute", program), "0F0,0I0,0W0\n1F0,1B0\n");
}

/// The cells of each row that are neither messages nor of FSDP.
std::vector<std::vector<std::string>> computeAndReductions(const CellRows &rows,
                                                           char separator) {
  std::vector<std::vector<std::string>> result;
  for (llvm::StringRef row : rows) {
    auto &cells = result.emplace_back();
    for (llvm::StringRef cell : llvm::split(row, separator))
      if (!cell.contains("SEND_") && !cell.contains("RECV_") &&
          !cell.ends_with("SHARD"))
        cells.push_back(cell.str());
  }
  return result;
}

TEST(Emit, ReducesGradientsWherePyTorchDoes) {
  size_t cases = 0;
  forEachCase("pytorch.jsonl", [&](const llvm::json::Object &object) {
    ++cases;
    std::string csv = emitted(
        "torch-csv", programFromRows(rowsOf(object, "comms")), {{2, 10}});
    CellRows lines;
    for (llvm::StringRef line :
         llvm::split(llvm::StringRef(csv).rtrim('\n'), '\n'))
      lines.push_back(line.str());
    EXPECT_EQ(computeAndReductions(lines, ','),
              computeAndReductions(rowsOf(object, "lowered"), ' '));
  });
  EXPECT_EQ(cases, 44u);
}

TEST(Emit, TorchGroupsPutTheForwardFirst) {
  Program program = programFromRows({"0F0 (0B0;0F1) 0B1"});
  EXPECT_EQ(emitted("torch-csv", program),
            "0F0,(0F1;0B0)OVERLAP_F_B,0B1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\n");
  EXPECT_EQ(emitted("actions", program),
            "rank 0: 0F0 (0B0;0F1)OVERLAP_B_F 0B1\n");
  EXPECT_THAT(emitted("torch-csv", program, {{2, 8}}),
              StartsWith("E0904: `(0B0;0F1)OVERLAP_B_F` needs PyTorch 2.9, but "
                         "the output is for 2.8"));
}

TEST(Emit, ALongGroupIsCutInMessages) {
  std::string group = "(0F0";
  for (int i = 1; i != 100; ++i)
    group += fmt::format(";0F{}", i);
  Program program = programFromRows({group + ")OVERLAP"});
  program.editHead().hasBackward = false;
  std::string text = emitted("torch-csv", program);
  EXPECT_THAT(text, HasSubstr("E0903: PyTorch has no group `(0F0;0F1;"));
  EXPECT_LT(text.size(), 200u);
}

TEST(Emit, JsonKeepsTextThatIsNoNumber) {
  Program program = programFromRows({"0F0"});
  program.editHead().name = "a\"b\n\xff";
  program.editHead().params = {{"A", "int", "-3"},       {"B", "int", "007"},
                               {"C", "float", "1.5e-3"}, {"D", "float", "inf"},
                               {"E", "bool", "true"},    {"F", "bool", "maybe"},
                               {"G", "int", ""}};
  std::string text = emitted("json", program);
  EXPECT_THAT(text, HasSubstr("\"schedule\": \"a\\\"b\\n\xEF\xBF\xBD\""));
  EXPECT_THAT(text, HasSubstr("\"params\": {\"A\": -3, \"B\": \"007\", \"C\": "
                              "1.5e-3, \"D\": \"inf\", \"E\": true, "
                              "\"F\": \"maybe\", \"G\": \"\"}"));
}

} // namespace
