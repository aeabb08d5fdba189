// The columns of a program, and the table of kinds.
#include "ppcc/IR/Program.h"

#include <gtest/gtest.h>

#include <random>

using namespace ppcc;

static bool same(const Action &a, const Action &b) {
  return a.kind == b.kind && a.pipe == b.pipe && a.stage == b.stage &&
         a.microbatch == b.microbatch && a.peer == b.peer &&
         a.phase == b.phase && a.site == b.site && a.joined == b.joined;
}

/// An action whose fields are anywhere in their ranges, the ends often.
static Action randomAction(std::mt19937 &random) {
  auto upTo = [&](uint32_t most) -> uint32_t {
    switch (random() % 4) {
    case 0:
      return 0;
    case 1:
      return most;
    default:
      return static_cast<uint32_t>(random() % (uint64_t(most) + 1));
    }
  };
  Action action;
  action.kind = KindId(upTo(kind::RecvBackward));
  action.pipe = PipeId(upTo(Program::maxPipes - 1));
  action.stage = StageId(upTo(Program::maxStages - 1));
  action.microbatch = upTo(Program::maxMicrobatches - 1);
  if (random() % 2)
    action.peer = StageId(upTo(Program::maxStages - 1));
  action.phase = PhaseId(upTo(Program::maxPhases));
  action.site = SiteId(upTo(UINT32_MAX));
  action.joined = random() % 2;
  return action;
}

TEST(Program, rowsHoldTheLargestValues) {
  std::mt19937 random(1);
  Program appended, set;
  std::vector<Action> actions;
  std::vector<uint32_t> rowsOfRank;
  for (uint32_t rows : {3, 0, 7, 1, 0, 0, 20, 0}) {
    appended.beginRank();
    rowsOfRank.push_back(rows);
    for (uint32_t i = 0; i != rows; ++i) {
      actions.push_back(randomAction(random));
      appended.append(actions.back());
    }
  }
  set.layout(rowsOfRank);
  for (size_t i = actions.size(); i-- > 0;)
    set.set(ActionId(i), actions[i]);

  for (Program *program : {&appended, &set}) {
    ASSERT_EQ(program->size(), actions.size());
    EXPECT_EQ(program->rowBytes(), actions.size() * 16);
    EXPECT_EQ(program->ranksBegun(), rowsOfRank.size());
    for (size_t i = 0; i != actions.size(); ++i) {
      EXPECT_TRUE(same((*program)[ActionId(i)], actions[i])) << i;
      EXPECT_EQ(program->joined(ActionId(i)), actions[i].joined);
      EXPECT_EQ(&program->kindOf(ActionId(i)),
                &program->kinds[actions[i].kind]);
    }
  }
}

TEST(Program, ranksAreRangesOfRows) {
  Program program;
  std::vector<uint32_t> rowsOfRank{0, 2, 0, 0, 3, 1, 0};
  program.layout(rowsOfRank);
  for (uint32_t r = 0; r != rowsOfRank.size(); ++r) {
    RankId rank(r);
    EXPECT_EQ(program.size(rank), rowsOfRank[r]);
    for (uint32_t i = program.begin(rank).value; i != program.end(rank).value;
         ++i)
      EXPECT_EQ(program.rankOf(ActionId(i)), rank) << i;
  }
  EXPECT_EQ(program.end(RankId(6)).value, program.size());
}

TEST(Program, groupsEndWithTheirRank) {
  Program program;
  for (const char *joined : {"01101", "11", "0"}) {
    program.beginRank();
    for (const char *c = joined; *c; ++c) {
      Action action;
      action.joined = *c == '1';
      program.append(action);
    }
  }
  std::vector<uint32_t> ends;
  for (uint32_t r = 0; r != 3; ++r)
    for (ActionId id = program.begin(RankId(r)); id != program.end(RankId(r));
         id = program.groupEnd(id, RankId(r)))
      ends.push_back(program.groupEnd(id, RankId(r)).value);
  EXPECT_EQ(ends, (std::vector<uint32_t>{3, 5, 7, 8}));
}

TEST(Program, everythingButTheRows) {
  Program program;
  program.name = "s";
  program.numRanks = 2;
  program.params.push_back({"P", "int", "2"});
  program.pipes.push_back({"main", 3, 4, {RankId(0), RankId(1)}, {}});
  program.hasBackward = false;
  program.phase("warmup");
  program.files.push_back({"a.pp"});
  program.sites.push_back({0, 1, 2, SiteId()});
  program.layout({1, 1});
  Program copy = program.withoutRows();
  EXPECT_EQ(copy.size(), 0u);
  EXPECT_EQ(copy.ranksBegun(), 0u);
  EXPECT_EQ(copy.name, "s");
  EXPECT_EQ(copy.numRanks, 2u);
  EXPECT_EQ(copy.params.size(), 1u);
  EXPECT_EQ(copy.pipes.front().endMicrobatch(), 7u);
  EXPECT_FALSE(copy.hasBackward);
  EXPECT_EQ(copy.phases, program.phases);
  EXPECT_EQ(copy.files.size(), 1u);
  EXPECT_EQ(copy.sites.size(), 2u);
}

TEST(Program, phasesAreNumberedOnce) {
  Program program;
  EXPECT_EQ(program.phase("").value, 0u);
  EXPECT_EQ(program.phase("a").value, 1u);
  EXPECT_EQ(program.phase("b").value, 2u);
  EXPECT_EQ(program.phase("a").value, 1u);
}

TEST(Program, microbatchesTellTheirPipe) {
  Program program;
  program.pipes.push_back({"a", 2, 3, {RankId(0)}, {}});
  program.pipes.push_back({"b", 7, 1, {RankId(0)}, {}});
  EXPECT_EQ(program.pipeOfMicrobatch(1), std::nullopt);
  EXPECT_EQ(program.pipeOfMicrobatch(2), PipeId(0));
  EXPECT_EQ(program.pipeOfMicrobatch(4), PipeId(0));
  EXPECT_EQ(program.pipeOfMicrobatch(5), std::nullopt);
  EXPECT_EQ(program.pipeOfMicrobatch(7), PipeId(1));
  EXPECT_EQ(program.pipeOfMicrobatch(8), std::nullopt);
  EXPECT_EQ(program.totalMicrobatches(), 4u);
}

TEST(KindTable, whatRemainsWithoutAPart) {
  KindTable kinds;
  auto without = [&](const char *whole, const char *part) -> std::string {
    auto rest = kinds.without(*kinds.find(whole), *kinds.find(part));
    return rest ? kinds[*rest].letters : "";
  };
  EXPECT_EQ(without("B", "W"), "I");
  EXPECT_EQ(without("B", "I"), "W");
  EXPECT_EQ(without("B", "B"), "");
  EXPECT_EQ(without("B", "F"), "");
  EXPECT_EQ(without("I", "W"), "");
  EXPECT_EQ(without("I", "B"), "");
  EXPECT_EQ(without("F", "W"), "");
}

TEST(KindTable, find) {
  KindTable kinds;
  for (size_t i = 0; i != kinds.size(); ++i) {
    const KindInfo &info = kinds[KindId(i)];
    EXPECT_EQ(kinds.find(info.letters), KindId(i));
    EXPECT_EQ(kinds.find(info.kindClass, info.defines), KindId(i));
  }
  EXPECT_EQ(kinds.find("f"), std::nullopt);
  EXPECT_EQ(kinds.find(""), std::nullopt);
  EXPECT_EQ(kinds.find(KindClass::Send, slot::WeightGrad), std::nullopt);
}

TEST(Cells, messagesAlongSkipEdgesNameTheirPeer) {
  Program program;
  auto text = [&](uint32_t kind, uint32_t stage, uint32_t peer) {
    Action action;
    action.kind = KindId(kind);
    action.stage = StageId(stage);
    action.microbatch = 3;
    action.peer = StageId(peer);
    return cell(program, action);
  };
  EXPECT_EQ(text(kind::Forward, 1, Action::noPeer), "1F3");
  EXPECT_EQ(text(kind::SendForward, 1, 2), "1SEND_F3");
  EXPECT_EQ(text(kind::SendForward, 1, 3), "1SEND_F3>3");
  EXPECT_EQ(text(kind::RecvForward, 2, 1), "2RECV_F3");
  EXPECT_EQ(text(kind::RecvForward, 2, 0), "2RECV_F3<0");
  EXPECT_EQ(text(kind::SendBackward, 2, 1), "2SEND_B3");
  EXPECT_EQ(text(kind::SendBackward, 2, 0), "2SEND_B3>0");
  EXPECT_EQ(text(kind::RecvBackward, 1, 2), "1RECV_B3");
  EXPECT_EQ(text(kind::RecvBackward, 1, 4), "1RECV_B3<4");
}
