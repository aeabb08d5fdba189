// The columns of a program, and the table of kinds.
#include "ppcc/Analysis/Index/GroupIndex.h"

#include "llvm/ADT/STLExtras.h"

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
  Rows appended, set;
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

  for (const Rows &rows : {appended, set}) {
    ASSERT_EQ(rows.size(), actions.size());
    EXPECT_EQ(rows.rowBytes(), actions.size() * 16);
    EXPECT_EQ(rows.ranksBegun(), rowsOfRank.size());
    for (ActionId row : rows.rows()) {
      EXPECT_TRUE(same(rows[row], actions[row.value])) << row.value;
      EXPECT_EQ(rows.joined(row), actions[row.value].joined);
      EXPECT_EQ(rows.kind(row), actions[row.value].kind);
    }
  }
}

TEST(Program, ranksAreRangesOfRows) {
  Rows rows;
  std::vector<uint32_t> rowsOfRank{0, 2, 0, 0, 3, 1, 0};
  rows.layout(rowsOfRank);
  uint32_t ranks = 0, seen = 0;
  for (RankId rank : rows.ranks()) {
    EXPECT_EQ(rank.value, ranks++);
    EXPECT_EQ(rows.size(rank), rowsOfRank[rank.value]);
    EXPECT_EQ(rows.rows(rank).size(), rowsOfRank[rank.value]);
    EXPECT_EQ(rows.rows(rank).empty(), rowsOfRank[rank.value] == 0);
    for (ActionId row : rows.rows(rank)) {
      EXPECT_EQ(row.value, seen++);
      EXPECT_EQ(rows.rankOf(row), rank);
      EXPECT_TRUE(rows.rows(rank).contains(row));
    }
    EXPECT_FALSE(rows.rows(rank).contains(rows.end(rank)));
  }
  EXPECT_EQ(ranks, rowsOfRank.size());
  EXPECT_EQ(seen, rows.size());
  EXPECT_EQ(rows.rows().size(), rows.size());
}

TEST(Program, walksBackwards) {
  std::vector<uint32_t> rows;
  for (ActionId row : llvm::reverse(RowRange{ActionId(3), ActionId(6)}))
    rows.push_back(row.value);
  EXPECT_EQ(rows, (std::vector<uint32_t>{5, 4, 3}));
}

/// Rows whose ranks have a letter each: 1 for those that are joined.
static Program rowsJoined(std::initializer_list<const char *> ranks) {
  Rows rows;
  for (const char *joined : ranks) {
    rows.beginRank();
    for (const char *c = joined; *c; ++c) {
      Action action;
      action.joined = *c == '1';
      rows.append(action);
    }
  }
  return Program().withRows(std::move(rows));
}

TEST(Program, groupsEndWithTheirRank) {
  Program rows = rowsJoined({"01101", "", "11", "0"});
  std::vector<std::pair<uint32_t, uint32_t>> items;
  GroupIndex groups(rows);
  EXPECT_TRUE(groups.hasGroups());
  for (RankId rank : rows.ranks())
    for (RowRange item : rows.items(rank)) {
      items.push_back({item.from.value, item.to.value});
      EXPECT_EQ(rows.groupEnd(item.from, rank), item.to);
      for (ActionId row : item) {
        EXPECT_EQ(groups[row].from, item.from) << row.value;
        EXPECT_EQ(groups[row].to, item.to) << row.value;
      }
    }
  EXPECT_EQ(items, (std::vector<std::pair<uint32_t, uint32_t>>{
                       {0, 3}, {3, 5}, {5, 7}, {7, 8}}));
}

TEST(Program, itemsOfRows) {
  Program rows = rowsJoined({"0110", "01"});
  GroupIndex groups(rows);
  std::vector<std::pair<uint32_t, uint32_t>> expected{{0, 3}, {0, 3}, {0, 3},
                                                      {3, 4}, {4, 6}, {4, 6}};
  for (ActionId row : rows.rows()) {
    auto [from, to] = expected[row.value];
    for (RowRange item : {rows.itemOf(row), groups[row]}) {
      EXPECT_EQ(item.from.value, from) << row.value;
      EXPECT_EQ(item.to.value, to) << row.value;
    }
  }
  Program apart = rowsJoined({"00"});
  GroupIndex none(apart);
  EXPECT_FALSE(none.hasGroups());
  EXPECT_EQ(none[ActionId(1)].from.value, 1u);
  EXPECT_EQ(none[ActionId(1)].to.value, 2u);
}

TEST(Program, stagesOfAllPipesAreNumbered) {
  Pipe pipes[4];
  pipes[0].rankOfStage.resize(3);
  pipes[2].rankOfStage.resize(2);
  pipes[3].rankOfStage.resize(1);
  StageNumbering numbers(pipes);
  EXPECT_EQ(numbers.size(), 6u);
  EXPECT_EQ(numbers(PipeId(0), StageId(2)), 2u);
  EXPECT_EQ(numbers(PipeId(2), StageId(0)), 3u);
  EXPECT_EQ(numbers(PipeId(3), StageId(0)), 5u);
}

TEST(Program, slotsOfASet) {
  std::vector<uint8_t> bits;
  for (uint8_t slotBit : slotsIn(slot::Output | slot::WeightGrad))
    bits.push_back(slotBit);
  EXPECT_EQ(bits, (std::vector<uint8_t>{slot::Output, slot::WeightGrad}));
  for (uint8_t slotBit : slotsIn(0))
    ADD_FAILURE() << unsigned(slotBit);
}

TEST(Program, messagesHaveTwoEnds) {
  Program program;
  program.editHead().pipes.push_back(
      {"main", 0, 1, {RankId(4), RankId(7)}, {}});
  Action message;
  message.stage = StageId(0);
  message.peer = StageId(1);
  for (auto [kind, up, from] : {std::tuple(kind::SendForward, true, 0),
                                {kind::RecvBackward, true, 1}}) {
    message.kind = KindId(kind);
    EXPECT_EQ(program.kinds()[message.kind].goesToLaterStage(), up);
    EXPECT_EQ(program.endpointsOf(message).first, StageId(from));
    EXPECT_EQ(program.endpointsOf(message).second, StageId(1 - from));
    EXPECT_EQ(program.peerRank(message), RankId(7));
  }
  for (uint32_t kind : {kind::RecvForward, kind::SendBackward})
    EXPECT_FALSE(program.kinds()[KindId(kind)].goesToLaterStage());
}

TEST(Program, headsAreSharedUntilSomebodyChangesThem) {
  Program program;
  program.editHead().name = "s";
  const Head *alone = &program.head();
  EXPECT_EQ(&program.editHead(), alone) << "nobody shares it yet";
  Program copy = program, other = program.withRows(Rows());
  EXPECT_EQ(&copy.head(), alone);
  EXPECT_EQ(&other.head(), alone);
  copy.editHead().name = "t";
  EXPECT_EQ(copy.name(), "t");
  EXPECT_EQ(program.name(), "s");
  EXPECT_EQ(&other.head(), alone);
}

TEST(Program, factsEndWithTheRowsThatTheySpeakOf) {
  Program program;
  program.editRows().beginRank();
  auto isKnown = [](const Program &program) {
    return !program.provenUnder().empty() && !program.preconnect().empty();
  };
  auto know = [&] { program.setFacts({{"stream"}, {{RankId(0), RankId(1)}}}); };
  know();
  EXPECT_TRUE(isKnown(Program(program)));
  EXPECT_TRUE(isKnown(program.withEquivalentRows(Rows())));
  EXPECT_FALSE(isKnown(program.withRows(program.allRows())));
  program.editHead().name = "s";
  EXPECT_TRUE(isKnown(program));
  program.editRows().append({});
  EXPECT_TRUE(program.provenUnder().empty());
  EXPECT_TRUE(program.preconnect().empty());
}

TEST(Program, phasesAreNumberedOnce) {
  Program program;
  EXPECT_EQ(program.editHead().phase("").value, 0u);
  EXPECT_EQ(program.editHead().phase("a").value, 1u);
  EXPECT_EQ(program.editHead().phase("b").value, 2u);
  EXPECT_EQ(program.editHead().phase("a").value, 1u);
}

TEST(Program, microbatchesTellTheirPipe) {
  Program program;
  program.editHead().pipes.push_back({"a", 2, 3, {RankId(0)}, {}});
  program.editHead().pipes.push_back({"b", 7, 1, {RankId(0)}, {}});
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
    return rest ? kinds[*rest].mnemonic : "";
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
    EXPECT_EQ(kinds.find(info.mnemonic), KindId(i));
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
