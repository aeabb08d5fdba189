// The engine on programs of a few rows: what it refuses, refusal by refusal,
// what it says when a transport or a stage fails, and what it hands to stages.
#include "ppcc/Runtime/Cooperative.h"
#include "ppcc/Runtime/Trace.h"

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <sstream>

using namespace ppcc::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr uint16_t none = Row::noPeer;
constexpr uint8_t backwardSlots = slot::InputGrad | slot::WeightGrad;

/// A program that runs, to be changed in one place.
struct Sample {
  std::vector<Kind> kinds = {
      {"F", KindClass::Compute, slot::Output, 0},
      {"B", KindClass::Compute, backwardSlots, slot::Output},
      {"I", KindClass::Compute, slot::InputGrad, slot::Output},
      {"W", KindClass::Compute, slot::WeightGrad, slot::InputGrad},
      {"SEND_F", KindClass::Send, slot::Output, 0},
      {"RECV_F", KindClass::Recv, slot::Output, 0},
      {"SEND_B", KindClass::Send, slot::InputGrad, 0},
      {"RECV_B", KindClass::Recv, slot::InputGrad, 0},
      {"D", KindClass::Declared, 0, 0}};
  std::vector<uint32_t> stages = {0, 1, 1};
  std::vector<SkipEdge> skips = {{0, 2}};
  std::vector<uint16_t> gaps;
  std::vector<EdgeTensors> tensors;
  std::vector<Pipe> pipes = {{"main", 0, 2, {}, {}}, {"idle", 0, 1, {}, {}}};
  std::vector<const char *> phases = {""}, files = {"a.pp"};
  std::vector<Site> sites = {{-1, 0, 0, 0}, {0, 1, 1, 0}};
  std::vector<RankPair> preconnect;
  std::vector<std::vector<Row>> rows;
  std::vector<std::vector<Segment>> segments;
  uint32_t numRanks = 2, abi = abiVersion;
  bool hasBackward = true;

  Sample() {
    setRows({"0F0 0SEND_F0 0SEND_F0>2 0RECV_B0<2 0RECV_B0 0B0",
             "1RECV_F0 2RECV_F0<0 1F0 2F0 2B0 2SEND_B0>0 1B0 1SEND_B0"});
  }
  /// Of one pipe that has no edges but those between neighbours.
  Sample(std::vector<uint32_t> rankOfStage, std::vector<std::string> cells)
      : stages(std::move(rankOfStage)), skips() {
    numRanks = static_cast<uint32_t>(cells.size());
    setRows(cells);
  }

  /// Cells as in `0F0` or `0SEND_F0>2`; `+` in front joins one to that before,
  /// `'` says that it is of the second pipe, a microbatch of `-` that it has
  /// none.
  void setRows(const std::vector<std::string> &cells) {
    rows.clear();
    segments.clear();
    for (Pipe &pipe : pipes)
      pipe.numMicrobatches = 0;
    for (const std::string &list : cells) {
      std::istringstream in(list);
      rows.emplace_back();
      for (std::string cell; in >> cell;)
        add(rowOf(cell));
      segments.push_back({{0, uint32_t(rows.back().size()), 1, 0}});
      if (rows.back().empty())
        segments.back().clear();
    }
  }
  /// A pipe has the microbatches that its rows name.
  void add(const Row &row) {
    rows.back().push_back(row);
    Pipe &pipe = pipes[row.pipe];
    if (row.microbatch == Row::noMicrobatch)
      return;
    if (pipe.numMicrobatches == 0)
      pipe.firstMicrobatch = row.microbatch;
    uint32_t first = std::min(pipe.firstMicrobatch, row.microbatch);
    uint32_t end = std::max(pipe.firstMicrobatch + pipe.numMicrobatches,
                            row.microbatch + 1);
    pipe.firstMicrobatch = first;
    pipe.numMicrobatches = end - first;
  }
  Row rowOf(std::string cell) const {
    Row row{0, 0, 0, 0, none, 0, 0};
    for (; cell[0] == '+' || cell[0] == '\''; cell.erase(0, 1))
      if (cell[0] == '+')
        row.phaseAndJoined = Row::joinedBit;
      else
        row.pipe = 1;
    size_t behind = 0;
    row.stage = static_cast<uint16_t>(std::stoul(cell, &behind));
    cell.erase(0, behind);
    size_t length = 0;
    while (std::isupper(cell[length]) || cell[length] == '_')
      ++length;
    std::string mnemonic = cell.substr(0, length);
    cell.erase(0, length);
    while (kinds[row.kind].mnemonic != mnemonic)
      ++row.kind;
    if (cell == "-")
      row.microbatch = Row::noMicrobatch;
    else
      row.microbatch = static_cast<uint32_t>(std::stoul(cell, &behind));
    if (kinds[row.kind].runsOnStage())
      return row;
    bool up = mnemonic == "SEND_F" || mnemonic == "RECV_B";
    row.peer = behind < cell.size()
                   ? static_cast<uint16_t>(std::stoul(cell.substr(behind + 1)))
                   : static_cast<uint16_t>(row.stage + (up ? 1 : -1));
    return row;
  }

  template <class T> static ArrayView<T> list(const std::vector<T> &from) {
    return {from.data(), from.size()};
  }
  Program program() {
    for (Pipe &pipe : pipes)
      pipe.rankOfStage = list(stages);
    pipes[0].skipEdges = list(skips);
    pipes[0].gaps = list(gaps);
    pipes[0].tensors = list(tensors);
    ranks.clear();
    for (size_t i = 0; i != rows.size(); ++i)
      ranks.push_back({list(rows[i]), {}, list(segments[i])});
    return {abi,         numRanks,    "sample",        hasBackward,
            list(kinds), list(pipes), list(phases),    list(files),
            list(sites), list(ranks), list(preconnect)};
  }
  std::vector<RankProgram> ranks;
};

/// Notes what runs.
struct RecordingStage : StageHooks {
  using Value = int;
  std::string done, failed;
  std::function<void(const ActionContext &)> atWork;

  void note(const ActionContext &work) {
    done += (done.empty() ? "" : " ") + std::to_string(work.stage) +
            work.mnemonic() +
            (work.hasMicrobatch() ? std::to_string(work.microbatch) : "");
    if (atWork)
      atWork(work);
  }
  int forward(const ActionContext &work, const Inputs<int> &) {
    return note(work), 0;
  }
  int backward(const ActionContext &work, int *) { return note(work), 0; }
  int backward_input(const ActionContext &work, int *) { return note(work), 0; }
  void backward_weight(const ActionContext &work) { note(work); }
  void perform(const ActionContext &work) { note(work); }
  void release(const ActionContext &work) {
    done += " ~" + std::to_string(work.stage) + work.mnemonic();
  }
  void fail(const std::string &text) { failed = text; }
};

template <class Function> std::string errorOf(Function function) {
  try {
    function();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

/// What a run throws.
std::string linkError(Sample &sample, const Options &options = {}) {
  return errorOf([&] {
    Program program = sample.program();
    std::vector<RecordingStage> stages(program.numRanks);
    runCooperative(program, std::span(stages), options);
  });
}

struct Change {
  const char *error;
  void (*change)(Sample &);
};

void expectEach(std::initializer_list<Change> changes) {
  for (const Change &change : changes) {
    Sample sample;
    change.change(sample);
    EXPECT_EQ(linkError(sample), change.error);
  }
}

TEST(EngineGuards, OfPipes) {
  expectEach({
      {"", [](Sample &) {}},
      {"bad program: pipe `main` has 0 stages",
       [](Sample &s) { s.stages.clear(); }},
      {"bad program: pipe `main` has 65535 stages",
       [](Sample &s) { s.stages.resize(65535); }},
      {"", // As many as there can be.
       [](Sample &s) {
         s.stages.resize(65534);
         s.setRows({"", ""});
       }},
      {"bad program: pipe `main` has too many microbatches",
       [](Sample &s) { s.pipes[0].firstMicrobatch = UINT32_MAX; }},
      {"bad program: row 0 of rank 0 has no microbatch 0", // No overflow.
       [](Sample &s) { s.pipes[0].firstMicrobatch = UINT32_MAX - 1; }},
      {"bad program: pipe `main` has a stage on rank 2, but there are 2 ranks",
       [](Sample &s) { s.stages[2] = 2; }},
      {"bad program: pipe `main` has a skip edge from stage 0 to stage 3",
       [](Sample &s) { s.skips[0].to = 3; }},
      {"bad program: pipe `main` has a skip edge from stage 0 to stage 1",
       [](Sample &s) { s.skips[0].to = 1; }},
      {"bad program: pipe `main` has a skip edge from stage 2 to stage 0",
       [](Sample &s) { s.skips[0] = {2, 0}; }},
      {"bad program: the skip edges of pipe `main` are not in order",
       [](Sample &s) { s.skips.push_back(s.skips[0]); }},
      {"bad program: the skip edges of pipe `main` are not in order",
       [](Sample &s) {
         s.stages.push_back(1);
         s.skips = {{0, 3}, {0, 2}};
       }},
      {"bad program: the skip edges of pipe `main` are not in order",
       [](Sample &s) {
         s.stages.push_back(1);
         s.skips = {{1, 3}, {0, 3}};
       }},
      {"",
       [](Sample &s) {
         s.stages.resize(5, 0);
         s.skips = {{0, 2}, {0, 3}, {0, 4}, {1, 3}, {2, 4}};
         s.setRows({"", ""});
       }},
      {"bad program: pipe `main` has no edge after stage 2 to leave out, or "
       "its gaps are not in order",
       [](Sample &s) { s.gaps = {2}; }},
      {"bad program: pipe `main` has no edge after stage 1 to leave out, or "
       "its gaps are not in order",
       [](Sample &s) { s.gaps = {1, 1}; }},
      {"bad program: pipe `main` has no edge after stage 0 to leave out, or "
       "its gaps are not in order",
       [](Sample &s) { s.gaps = {1, 0}; }},
      {"bad program: pipe `main` has no edge from stage 1 to stage 1 to carry "
       "tensors",
       [](Sample &s) { s.tensors = {{1, 1, false, {}}}; }},
      {"bad program: pipe `main` has no edge from stage 2 to stage 3 to carry "
       "tensors",
       [](Sample &s) { s.tensors = {{0, 2, false, {}}, {2, 3, false, {}}}; }},
      {"bad program: pipe `main` cuts 1 microbatches into sequences of 0",
       [](Sample &s) { s.pipes[0].slices = 0; }},
      {"bad program: pipe `main` cuts 1 microbatches into sequences of 2",
       [](Sample &s) { s.pipes[0].slices = 2; }},
  });
}

TEST(EngineGuards, OfTheHead) {
  expectEach({
      {"the program has ABI 0, this engine has ABI 7: compile the schedule "
       "again with the ppcc of this engine",
       [](Sample &s) { s.abi = 0; }},
      {"bad program: it has rows for 1 of 2 ranks",
       [](Sample &s) { s.rows.pop_back(); }},
      {"", [](Sample &s) { s.kinds.resize(256, s.kinds[0]); }},
      {"bad program: it has too many kinds or pipes",
       [](Sample &s) { s.kinds.resize(257, s.kinds[0]); }},
      {"", [](Sample &s) { s.pipes.resize(256, s.pipes[1]); }},
      {"bad program: it has too many kinds or pipes",
       [](Sample &s) { s.pipes.resize(257, s.pipes[1]); }},
      {"bad program: it has no sites or no phases",
       [](Sample &s) { s.sites.clear(); }},
      {"bad program: it has no sites or no phases",
       [](Sample &s) { s.phases.clear(); }},
      {"bad program: site 1 is in file 1, but there are 1",
       [](Sample &s) { s.sites[1].file = 1; }},
      {"bad program: site 1 is in file 0, but there are 0",
       [](Sample &s) { s.files.clear(); }},
      {"bad program: site 0 is in file -2, but there are 1",
       [](Sample &s) { s.sites[0].file = -2; }},
      {"bad program: site 1 has no caller 2",
       [](Sample &s) { s.sites[1].caller = 2; }},
      {"", [](Sample &s) { s.preconnect = {{0, 1}}; }},
      {"bad program: it connects rank 0 to rank 2",
       [](Sample &s) { s.preconnect = {{0, 1}, {0, 2}}; }},
      {"bad program: it connects rank 1 to rank 1",
       [](Sample &s) { s.preconnect = {{1, 1}}; }},
  });
  Sample sample;
  Program program = sample.program();
  std::vector<RecordingStage> three(3);
  EXPECT_EQ(errorOf([&] { runCooperative(program, std::span(three)); }),
            "the program is for 2 ranks, but there are 3");
}

TEST(EngineGuards, OfKinds) {
  using enum KindClass;
  auto with = [](KindClass kindClass, uint8_t defines, uint8_t needs = 0,
                 Collective collective = Collective::None) {
    Sample sample;
    Kind kind{"K", kindClass, defines, needs};
    kind.collective = collective;
    sample.kinds.push_back(kind);
    return linkError(sample);
  };
  const char *refused = "bad program: kind `K` cannot be executed";
  for (int bits = 0; bits != 16; ++bits) {
    uint8_t slots = static_cast<uint8_t>(bits);
    bool moves = slots == slot::Output || slots == slot::InputGrad;
    bool computes =
        moves || slots == slot::WeightGrad || slots == backwardSlots;
    EXPECT_EQ(with(Compute, slots), computes ? "" : refused) << bits;
    EXPECT_EQ(with(Send, slots), moves ? "" : refused) << bits;
    EXPECT_EQ(with(Recv, slots), moves ? "" : refused) << bits;
    EXPECT_EQ(with(Declared, slots), bits ? refused : "") << bits;
  }
  EXPECT_EQ(with(Declared, 0, slot::Output), refused);
  EXPECT_EQ(with(Declared, 0, 0, Collective::Outside), "");
  EXPECT_EQ(with(Declared, 0, 0, Collective(int(Collective::From) + 1)),
            refused);
  EXPECT_EQ(with(KindClass(4), slot::Output), refused);
}

TEST(EngineGuards, OfRows) {
  // Changes the third row of the second rank, `1F0`.
  expectEach({
      {"bad program: row 2 of rank 1 has no kind 9",
       [](Sample &s) { s.rows[1][2].kind = 9; }},
      {"bad program: row 2 of rank 1 has no pipe 2",
       [](Sample &s) { s.rows[1][2].pipe = 2; }},
      {"bad program: row 2 of rank 1 has no stage 3",
       [](Sample &s) { s.rows[1][2].stage = 3; }},
      {"bad program: row 2 of rank 1 has no microbatch 2",
       [](Sample &s) { s.rows[1][2].microbatch = 2; }},
      {"bad program: row 2 of rank 1 has no microbatch 4294967295",
       [](Sample &s) { s.rows[1][2].microbatch = Row::noMicrobatch; }},
      {"bad program: row 2 of rank 1 has no phase 1",
       [](Sample &s) { s.rows[1][2].phaseAndJoined = 1; }},
      {"bad program: row 2 of rank 1 has no site 2",
       [](Sample &s) { s.rows[1][2].site = 2; }},
      {"bad program: row 2 of rank 1 runs stage 0, which is on rank 0",
       [](Sample &s) { s.rows[1][2].stage = 0; }},
      {"bad program: row 2 of rank 1 computes, but has a peer",
       [](Sample &s) { s.rows[1][2].peer = 0; }},
      {"bad program: row 0 of rank 1 has no peer",
       [](Sample &s) { s.rows[1][0].peer = none; }},
      {"bad program: row 0 of rank 1 has no message to exchange with stage 2",
       [](Sample &s) { s.rows[1][0].peer = 2; }}, // On the same rank.
      {"bad program: row 1 of rank 0 has no message to exchange with stage 7",
       [](Sample &s) { s.rows[0][1].peer = 7; }},
      {"bad program: row 0 of rank 1 has no message to exchange with stage 0",
       [](Sample &s) {
         s.gaps = {0}, s.rows[0].clear(), s.segments[0].clear();
       }},
      {"bad program: row 0 of rank 0 joins a group before it",
       [](Sample &s) { s.rows[0][0].phaseAndJoined = Row::joinedBit; }},
      {"bad program: row 3 of rank 1 joins a group before it",
       [](Sample &s) {
         s.rows[1][3].phaseAndJoined = Row::joinedBit;
         s.segments[1] = {{0, 3, 1, 0}, {3, 5, 1, 0}};
       }},
      {"bad program: a segment of rank 1 leaves its rows",
       [](Sample &s) { s.segments[1][0].rows = 9; }},
      {"bad program: a segment of rank 1 is empty",
       [](Sample &s) { s.segments[1].push_back({8, 0, 1, 0}); }},
      {"bad program: a segment of rank 1 is empty",
       [](Sample &s) { s.segments[1].push_back({0, 8, 0, 1}); }},
      // A stage does it once, not once a turn.
      {"bad program: row 0 of rank 0 has no microbatch 4294967295",
       [](Sample &s) {
         s.setRows({"0D-", ""});
         s.segments[0] = {{0, 1, 2, 1}};
       }},
      {"", [](Sample &s) { s.rows[0].push_back(s.rowOf("0D-")); }},
      // Nobody runs a stage that does not begin.
      {"rank 0: the forward of microbatch 0 on stage 0 is missing",
       [](Sample &s) { s.setRows({"0D0", ""}); }},
      {"bad program: row 0 of rank 0 has no phase 3",
       [](Sample &s) {
         s.setRows({"0D-", ""});
         s.rows[0][0].phaseAndJoined = 3;
       }},
  });
  Sample sample;
  Program program = sample.program();
  std::string packed(17, '\0');
  sample.ranks[1] = {{}, {packed.data(), packed.size()}, {}};
  std::vector<RecordingStage> stages(2);
  EXPECT_EQ(errorOf([&] { runCooperative(program, std::span(stages)); }),
            "bad program: the packed rows of rank 1 are cut off");
}

/// An order of one rank that hosts the only stage, in `slices`.
std::string orderOf(const char *cells, uint32_t slices = 1) {
  Sample sample({0}, {cells});
  sample.pipes[0].slices = slices;
  return linkError(sample);
}

TEST(EngineGuards, OfTheOrderOnAStage) {
  EXPECT_EQ(orderOf("0F0 0B0"), "");
  EXPECT_EQ(orderOf("0F0 0I0 0W0"), "");
  EXPECT_EQ(orderOf("0F0 0I0 0F1 0I1 0W1 0W0"), "");
  EXPECT_EQ(orderOf("0F0 0F0 0B0"), "rank 0, 0F0: runs twice");
  EXPECT_EQ(orderOf("0F0 0I0 0I0 0W0"), "rank 0, 0I0: runs twice");
  EXPECT_EQ(orderOf("0F3 0F1 0I1 0I3 0I1 0W1 0W3"), "rank 0, 0I1: runs twice");
  EXPECT_EQ(orderOf("0F0 0I0 0B0 0W0"), "rank 0, 0B0: runs twice");
  EXPECT_EQ(orderOf("0B0"), "rank 0, 0B0: runs without its forward");
  EXPECT_EQ(orderOf("0F1 0I0"), "rank 0, 0I0: runs without its forward");
  EXPECT_EQ(orderOf("0W0"), "rank 0, 0W0: runs without its forward");
  EXPECT_EQ(orderOf("0F0 0B0 0B0"), "rank 0, 0B0: runs without its forward");
  EXPECT_EQ(orderOf("0F0 0B0 0F0 0B0"), "rank 0, 0F0: runs twice");
  EXPECT_EQ(orderOf("0F0 0B0 0I0"), "rank 0, 0I0: runs without its forward");
  EXPECT_EQ(orderOf("0F0 0I0 0W0 0W0"),
            "rank 0, 0W0: runs without its forward");
  EXPECT_EQ(orderOf("0F0 0W0 0I0"),
            "rank 0, 0W0: runs before the gradient of the input");
  const char *left = "rank 0: the program has ended, but 1 values have not "
                     "been read, or have no backward; one is of microbatch ";
  EXPECT_EQ(orderOf("0F0 0B0 0F1"), left + std::string("1"));
  EXPECT_EQ(orderOf("0F2 0I2 0F1 0B1"), left + std::string("2"));
  // All in one group, though none has begun.
  EXPECT_EQ(orderOf("0F0 +0F0 0B0"), "rank 0, 0F0: runs twice");
  EXPECT_EQ(orderOf("0F0 0I0 +0I0 0W0"), "rank 0, 0I0: runs twice");
  const char *joined = ": runs in a group with what it needs, or what needs it";
  EXPECT_EQ(orderOf("0F0 +0B0"), std::string("rank 0, 0B0") + joined);
  EXPECT_EQ(orderOf("0F0 0I0 +0W0"), std::string("rank 0, 0W0") + joined);
  EXPECT_EQ(orderOf("0F0 0F1 +0B0 0B1"), "");
}

TEST(EngineGuards, OfSlices) {
  EXPECT_EQ(orderOf("0F0 0F1 0B1 0B0 0F2 0F3 0B3 0B2", 2), "");
  EXPECT_EQ(orderOf("0F0 0F1 0I1 0I0 0W0 0W1", 2),
            "");                                // Weights wait for none.
  EXPECT_EQ(orderOf("0F1 0F2 0B2 0B1", 2), ""); // The first microbatch is 1.
  EXPECT_EQ(orderOf("0F1 0B1 0F0", 2),
            "rank 0, 0F1: runs without the slice before it");
  EXPECT_EQ(orderOf("0F0 0B0 0F1 0B1", 2),
            "rank 0, 0F1: runs without the slice before it");
  EXPECT_EQ(orderOf("0F2 0B2 0F1", 2),
            "rank 0, 0F2: runs without the slice before it");
  EXPECT_EQ(orderOf("0F0 0F1 0F2 0F3 0B3 0B1 0B2 0B0", 4),
            "rank 0, 0B1: runs before the backward of the next slice");
  EXPECT_EQ(orderOf("0F0 0F1 0I0 0I1 0W0 0W1", 2),
            "rank 0, 0I0: runs before the backward of the next slice");
}

TEST(EngineGuards, TellPipesAndStagesApart) {
  // The same microbatch on two stages and in two pipes.
  Sample good({0, 0}, {"0F0 '0F0 1F0 '1F0 '1B0 1B0 0B0 '0B0"});
  EXPECT_EQ(linkError(good), "");
  Sample twice({0, 0}, {"0F0 '0F0 1F0 '1F0 '1I0 1I0 '1I0"});
  EXPECT_EQ(linkError(twice), "rank 0, 1I0: runs twice");
  Sample open({0, 0}, {"0F0 '0F0 1F0 '1F0 '1B0 1B0 0B0"});
  EXPECT_THAT(linkError(open), HasSubstr("have no backward; one is of "
                                         "microbatch 0"));
  Sample apart({0, 0}, {"'0F0 1F0"});
  EXPECT_EQ(linkError(apart),
            "rank 0, 1F0: needs the output of stage 0, which is "
            "not there");
  Sample early({0, 0}, {"'0F0 '1F0 0F0 1F0 1B0 '0B0"});
  EXPECT_EQ(linkError(early),
            "rank 0, 0B0: needs the gradient of stage 1, which "
            "is not there");
}

TEST(EngineGuards, OfMessages) {
  auto with = [](std::vector<std::string> cells, bool backward = false) {
    Sample sample({0, 1}, cells);
    sample.hasBackward = backward;
    return linkError(sample);
  };
  EXPECT_EQ(with({"0F0 0SEND_F0 0F1 0SEND_F1", "1RECV_F0 1RECV_F1 1F0 1F1"}),
            "");
  EXPECT_EQ(with({"0F0 0SEND_F0 0SEND_F0", "1RECV_F0 1F0"}),
            "rank 0, 0SEND_F0: the data of this send does not exist");
  EXPECT_EQ(with({"0F0 0SEND_F0", "1RECV_F0 1RECV_F0 1F0"}),
            "rank 1, 1RECV_F0: this message is received twice");
  EXPECT_EQ(with({"0F0 0SEND_F0 0F1 0SEND_F1", "1RECV_F1 1RECV_F0 1F1 1F0"}),
            "rank 1, 1F1: rank 0 sent 0SEND_F0 where 0SEND_F1 is received");
  EXPECT_EQ(with({"0F0 0F0", ""}), "rank 0, 0F0: runs twice");
  EXPECT_EQ(with({"0F0 +0F0", ""}), "rank 0, 0F0: runs twice");
  EXPECT_EQ(with({"0F0", ""}),
            "rank 0: the program has ended, but 1 values have not been read, "
            "or have no backward; one is of microbatch 0");
  EXPECT_EQ(with({"0F1 0SEND_F1", "1RECV_F1"}),
            "rank 1: the program has ended, but 1 values have not been read, "
            "or have no backward; one is of microbatch 1");
  EXPECT_EQ(with({"0F0 0SEND_F0", ""}),
            "rank 1: the forward of microbatch 0 on stage 1 is missing");
  EXPECT_EQ(with({"0F0 0SEND_F0 0F2 0SEND_F2", "1RECV_F0 1F0 1RECV_F2 1F2"}),
            "rank 0: the forward of microbatch 1 on stage 0 is missing");
  EXPECT_EQ(with({"0F0 0SEND_F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0"}, true),
            "rank 1: the program has ended, but 1 values have not been read, "
            "or have no backward; one is of microbatch 0");
  EXPECT_EQ(with({"0F0 0SEND_F0 0F0", "1RECV_F0 1F0"}),
            "rank 0, 0F0: runs twice"); // After its output has gone.
  EXPECT_EQ(
      with({"0RECV_B0 0F0 0SEND_F0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0"}, true),
      "");
}

TEST(Engine, RunsNothingOfAnOrderThatIsWrong) {
  // The last of ten rows, in the last turn of its loop.
  Sample sample({0}, {"0F0 0B0 0F1 0B1 0F2 0W2"});
  sample.pipes[0].numMicrobatches = 9;
  sample.segments[0] = {{0, 2, 1, 0}, {2, 2, 4, 2}, {4, 2, 1, 0}};
  Program program = sample.program();
  std::vector<RecordingStage> stages(1);
  EXPECT_EQ(errorOf([&] { runCooperative(program, std::span(stages)); }),
            "rank 0, 0W2: runs before the gradient of the input");
  EXPECT_EQ(stages[0].done, "");
}

TEST(Engine, WritesALoopApartWhereWhatIsRestoredChanges) {
  Sample sample({0}, {"0F0 0B0 0D3 0D1 0D2"});
  sample.kinds.back().restores = slot::Output;
  sample.pipes[0].numMicrobatches = 6;
  sample.segments[0] = {{0, 2, 6, 1}, {2, 3, 1, 0}};
  std::vector<RecordingStage> stages(1);
  std::string restored;
  stages[0].atWork = [&](const ActionContext &work) {
    if (work.isRestored)
      restored += work.mnemonic() + std::to_string(work.microbatch) + " ";
  };
  runCooperative(sample.program(), std::span(stages));
  EXPECT_EQ(restored, "F1 F2 F3 ");
  EXPECT_EQ(stages[0].done, "0F0 0B0 ~0B 0F1 0B1 ~0B 0F2 0B2 ~0B 0F3 0B3 ~0B "
                            "0F4 0B4 ~0B 0F5 0B5 ~0B 0D3 0D1 0D2");
}

TEST(EngineGuards, OfTheSetUp) {
  Sample sample;
  Trace trace(3);
  EXPECT_EQ(linkError(sample, {.trace = &trace}),
            "the trace is for 3 ranks, the program for 2");
}

/// How a transport or a stage fails.
void failAs(const std::string &how) {
  if (how == "late")
    throw TimedOut();
  if (how == "peer")
    throw PeerFailed{"rank 9 is ill"};
  if (how == "error")
    throw Error("whole");
  if (how == "std")
    throw std::runtime_error("broken");
  if (how == "int")
    throw 42;
}

/// A transport of two ranks that fails in one function.
struct FailingTransport {
  std::string where, how, failure;
  size_t received = 0, recycled = 0;

  void at(const char *function) {
    if (where == function)
      failAs(how);
  }
  uint32_t numRanks() const { return 2; }
  void connect(uint32_t, std::chrono::milliseconds) { at("connect"); }
  void beginBatch() { at("beginBatch"); }
  void endBatch() { at("endBatch"); }
  void fork(size_t) { at("fork"); }
  void join(size_t) { at("join"); }
  void send(uint32_t, Message<int> &&) { at("send"); }
  void postReceive(uint32_t, const Label &label, size_t) {
    at("postReceive");
    expected.push_back(label);
  }
  bool receive(uint32_t, Message<int> &into, std::chrono::milliseconds) {
    at("receive");
    into.label = expected.front();
    expected.pop_front();
    ++received;
    return true;
  }
  void recycle(int &&) { ++recycled; }
  bool sendsMatched(uint32_t, std::chrono::milliseconds) {
    at("sendsMatched");
    return true;
  }
  void finish(std::chrono::milliseconds) { at("finish"); }
  void fail(const std::string &text) { failure = text; }
  std::deque<Label> expected{};
};

TEST(EngineGuards, NameThePlaceWhereATransportFails) {
  // One rank of two, whose transport answers all.
  Sample sample({0, 1}, {"0F0 0F1 0SEND_F0 +0SEND_F1 0RECV_B0 0RECV_B1 0B0 "
                         "+0B1",
                         ""});
  sample.preconnect = {{0, 1}};
  Program program = sample.program();
  auto with = [&](const char *where, const char *how) {
    FailingTransport endpoint{where, how};
    RecordingStage stage;
    Options options{.waitPolicy = WaitPolicy::Rendezvous,
                    .timeout = std::chrono::milliseconds(7)};
    std::string error =
        errorOf([&] { run(program, 0, stage, endpoint, options); });
    // The others hear why: of a failure elsewhere its cause alone.
    EXPECT_EQ(endpoint.failure,
              std::string(how) == "peer" ? "rank 9 is ill" : error);
    EXPECT_EQ(stage.failed, endpoint.failure);
    return error;
  };
  EXPECT_EQ(with("nowhere", "std"), "");
  struct {
    const char *where, *at, *awaited;
  } waits[] = {
      {"connect", "rank 0", "the connection to rank 1"},
      {"postReceive", "rank 0, 0RECV_B0", "1SEND_B0 of rank 1"},
      {"send", "rank 0, 0SEND_F0", "the receive of rank 1"},
      {"endBatch", "rank 0, 0SEND_F1", "the receive of rank 1"},
      {"sendsMatched", "rank 0, 0SEND_F0", "the receive of rank 1"},
      {"receive", "rank 0, 0RECV_B0", "1SEND_B0 of rank 1"},
      {"finish", "rank 0", "the end of its last sends"},
  };
  for (auto [where, at, awaited] : waits) {
    std::string before = at + std::string(": ");
    EXPECT_EQ(with(where, "late"), before + "has waited 7 ms for " + awaited);
    EXPECT_EQ(with(where, "peer"), before + "stopped, because rank 9 is ill");
    EXPECT_EQ(with(where, "error"), "whole");
    EXPECT_EQ(with(where, "std"), before + awaited + ": broken");
  }
  EXPECT_EQ(with("beginBatch", "std"), "rank 0, 0SEND_F0: broken");
  EXPECT_EQ(with("fork", "std"), "rank 0, 0B1: broken");
  EXPECT_EQ(with("join", "std"), "rank 0, 0B1: broken");
  FailingTransport endpoint;
  RecordingStage stage;
  EXPECT_EQ(errorOf([&] { run(program, 2, stage, endpoint); }),
            "there is no rank 2");
  Sample alone({0}, {"0F0 0B0"});
  EXPECT_EQ(errorOf([&] { run(alone.program(), 0, stage, endpoint); }),
            "the program is for 1 ranks, but there are 2");
}

TEST(EngineGuards, NameThePlaceWhereAStageFails) {
  auto with = [](const char *cell, const char *how, Overlap overlap) {
    Sample sample({0}, {"0F0 +0F1 0I0 +0I1 0W0 +0W1 0D1 0D-"});
    Program program = sample.program();
    std::vector<RecordingStage> stages(1);
    stages[0].atWork = [&](const ActionContext &work) {
      std::string here =
          std::to_string(work.stage) + work.mnemonic() +
          (work.hasMicrobatch() ? std::to_string(work.microbatch) : "");
      if (here == cell)
        failAs(how);
    };
    return errorOf([&] {
      runCooperative(program, std::span(stages), {.overlap = overlap});
    });
  };
  for (std::string cell : {"0F0", "0F1", "0I1", "0W0", "0D1", "0D"}) {
    auto failed = [&](const char *how) {
      return with(cell.c_str(), how, Overlap::Serial);
    };
    EXPECT_EQ(failed("late"),
              "rank 0, " + cell + ": timed out waiting for other ranks");
    EXPECT_EQ(failed("peer"),
              "rank 0, " + cell + ": stopped, because rank 9 is ill");
    EXPECT_EQ(failed("error"), "whole");
    EXPECT_EQ(failed("std"), "rank 0, " + cell + ": the stage threw: broken");
    EXPECT_EQ(failed("int"), "rank 0, " + cell + ": the stage threw");
    EXPECT_EQ(failed("not at all"), "");
  }
}

TEST(EngineGuards, NameThePlaceWhereAStageFailsInItsThread) {
  Sample sample({0, 0}, {"0F0 1F0 +0F1 1F1"});
  sample.hasBackward = false;
  Program program = sample.program();
  struct Second : StageHooks {
    using Value = int;
    int forward(const ActionContext &work, const Inputs<int> &) {
      if (work.microbatch == 1)
        throw std::runtime_error("broken");
      return 0;
    }
  };
  std::vector<Second> stages(1);
  EXPECT_EQ(errorOf([&] {
              runCooperative(program, std::span(stages),
                             {.overlap = Overlap::Concurrent});
            }),
            "rank 0, 0F1: the stage threw: broken");
}

/// A stage that can do nothing but forward, and whose values cannot be added.
struct ForwardOnlyStage : StageHooks {
  struct Value {};
  Value forward(const ActionContext &, const Inputs<Value> &) { return {}; }
};
struct WithoutAdd : ForwardOnlyStage {
  Value backward(const ActionContext &, Value *) { return {}; }
};
/// Hands back two gradients whatever it read.
struct Two : StageHooks {
  using Value = int;
  int forward(const ActionContext &, const Inputs<int> &) { return 0; }
  std::vector<int> backward(const ActionContext &, int *) { return {1, 2}; }
};

template <class S> std::string linkErrorWith(Sample sample) {
  Program program = sample.program();
  std::vector<S> stages(program.numRanks);
  return errorOf([&] { runCooperative(program, std::span(stages)); });
}

TEST(EngineGuards, OfStages) {
  auto forwardOnly = [](const char *cells) {
    return linkErrorWith<ForwardOnlyStage>(Sample({0}, {cells}));
  };
  EXPECT_EQ(forwardOnly("0F0 0B0"),
            "rank 0, 0B0: the stage threw: it has no function "
            "`backward`");
  EXPECT_EQ(forwardOnly("0F0 0I0 0W0"),
            "rank 0, 0I0: the stage threw: it has no function "
            "`backward_input`");
  EXPECT_EQ(forwardOnly("0D0 0F0 0B0"),
            "rank 0, 0D0: the stage threw: it has no function "
            "`perform`");
  struct NoWeight : ForwardOnlyStage {
    Value backward_input(const ActionContext &, Value *) { return {}; }
  };
  EXPECT_EQ(linkErrorWith<NoWeight>(Sample({0}, {"0F0 0I0 0W0"})),
            "rank 0, 0W0: the stage threw: it has no function "
            "`backward_weight`");
  Sample skip({0, 0, 0}, {"0F0 1F0 2F0 2B0 1B0 0B0"});
  skip.skips = {{0, 2}};
  EXPECT_EQ(linkErrorWith<WithoutAdd>(skip),
            "rank 0, 0B0: the stage threw: it has no function `add`");
  EXPECT_EQ(linkErrorWith<Two>(Sample({0, 0}, {"0F0 1F0 1B0 0B0"})),
            "rank 0, 1B0: the stage threw: 2 gradients for 1 inputs");
}

/// Sends a value that is a number too long, to a transport with or without
/// labels.
struct Long : StageHooks {
  using Value = std::vector<char>;
  size_t wanted;
  Long(size_t wanted = 0) : wanted(wanted) {}
  Value forward(const ActionContext &, const Inputs<Value> &) {
    return Value(5);
  }
  size_t messageBytes(const Label &) { return wanted; }
};
struct Untagged {
  static constexpr bool untagged = true;
  uint32_t numRanks() const { return 2; }
  void send(uint32_t, Message<std::vector<char>> &&) {}
  void postReceive(uint32_t, const Label &, size_t) {}
  bool receive(uint32_t, Message<std::vector<char>> &,
               std::chrono::milliseconds) {
    return false;
  }
  bool sendsMatched(uint32_t, std::chrono::milliseconds) { return true; }
  void finish(std::chrono::milliseconds) {}
  void fail(const std::string &) {}
};

TEST(EngineGuards, OfSizes) {
  Sample sample({0, 1}, {"0F0 0SEND_F0", "1RECV_F0 1F0"});
  sample.hasBackward = false;
  Program program = sample.program();
  auto with = [&](size_t wanted) {
    std::vector<Long> stages(2, Long(wanted));
    return errorOf([&] { runCooperative(program, std::span(stages)); });
  };
  EXPECT_EQ(with(0), ""); // What comes is taken.
  EXPECT_EQ(with(5), "");
  EXPECT_EQ(with(4), "rank 1, 1F0: 0SEND_F0 has 5 bytes where 4 are expected");
  EXPECT_EQ(with(6), "rank 1, 1F0: 0SEND_F0 has 5 bytes where 6 are expected");
  // Without labels the sender looks, too: a receiver could not tell.
  Long stage(4);
  Untagged endpoint;
  EXPECT_EQ(errorOf([&] { run(program, 0, stage, endpoint); }),
            "rank 0, 0SEND_F0: 0SEND_F0 has 5 bytes where 4 are expected");
}

TEST(Engine, CountsWhatARankDoes) {
  Sample sample;
  std::vector<RecordingStage> stages(2);
  std::vector<Stats> stats =
      runCooperative(sample.program(), std::span(stages));
  EXPECT_EQ(stats[0].actions, 6u);
  EXPECT_EQ(stats[0].sends, 2u);
  EXPECT_EQ(stats[0].receives, 2u);
  EXPECT_EQ(stats[0].peakActivations, 1u);
  EXPECT_EQ(stats[0].peakReceives, 2u);
  EXPECT_EQ(stats[1].actions, 8u);
  EXPECT_EQ(stats[1].peakActivations, 2u);
  EXPECT_EQ(stages[1].done, "1F0 2F0 2B0 ~2B 1B0 ~1B");
}

/// What a rank alone does.
std::string doneOf(Sample sample) {
  std::vector<RecordingStage> stages(1);
  runCooperative(sample.program(), std::span(stages));
  return stages[0].done;
}

TEST(Engine, ReleasesWhatAForwardKept) {
  EXPECT_EQ(doneOf(Sample({0}, {"0F0 0I0 0F1 0W0 0B1"})),
            "0F0 0I0 0F1 0W0 ~0W 0B1 ~0B");
  Sample forward({0}, {"0F0 0D0 0F1"});
  forward.hasBackward = false;
  EXPECT_EQ(doneOf(forward), "0F0 ~0F 0D0 0F1 ~0F");
}

TEST(Engine, SaysWhatIsRestored) {
  Sample sample({0}, {"0F0 0D0 0B0 0F1 0B1"});
  sample.kinds.back().restores = slot::Output;
  std::vector<RecordingStage> stages(1);
  std::string restored;
  stages[0].atWork = [&](const ActionContext &work) {
    if (work.isRestored)
      restored += work.mnemonic() + std::to_string(work.microbatch) + " ";
  };
  runCooperative(sample.program(), std::span(stages));
  EXPECT_EQ(restored, "F0 ");
}

/// Notes which numbers come, and hands on others.
struct Numbers : StageHooks {
  using Value = int;
  std::string seen;

  int forward(const ActionContext &work, const Inputs<int> &inputs) {
    seen += std::to_string(work.stage) + ":";
    int sum = 0;
    for (size_t i = 0; i != inputs.size(); ++i) {
      seen += " " + std::to_string(inputs[i]);
      sum += inputs.take(i);
    }
    seen += "; ";
    return 10 * sum + work.stage + 1;
  }
  /// A gradient of its own for each input.
  std::vector<int> backward(const ActionContext &work, int *grad) {
    seen += std::to_string(work.stage) + "~ " +
            (grad ? std::to_string(*grad) : "") + "; ";
    std::vector<int> grads;
    for (int i = 0; i != work.stage; ++i)
      grads.push_back((grad ? *grad : 0) + 100 * work.stage + i);
    return grads;
  }
};
/// The same, with one for all.
struct SharedGradient : Numbers {
  int backward(const ActionContext &work, int *grad) {
    Numbers::backward(work, grad);
    return 7;
  }
};

template <class S> std::string seenBy(Sample sample) {
  Program program = sample.program();
  std::vector<S> stages(program.numRanks);
  runCooperative(program, std::span(stages));
  std::string all;
  for (const S &stage : stages)
    all += stage.seen;
  return all;
}

TEST(Engine, HandsOnWhatStagesMake) {
  // Stage 2 reads stages 0 and 1, so stage 0 gets two gradients.
  EXPECT_EQ(seenBy<Numbers>(Sample()),
            "0:; 0~ 501; 1: 1; 2: 1 12; 2~ ; 1~ 201; ");
  EXPECT_EQ(seenBy<SharedGradient>(Sample()),
            "0:; 0~ 14; 1: 1; 2: 1 12; 2~ ; 1~ 7; ");
  Sample alone({0, 0, 0}, {"0F0 1F0 2F0 2B0 1B0 0B0"});
  alone.skips = {{0, 2}};
  EXPECT_EQ(seenBy<Numbers>(alone), "0:; 1: 1; 2: 1 12; 2~ ; 1~ 201; 0~ 501; ");
  EXPECT_EQ(seenBy<SharedGradient>(alone),
            "0:; 1: 1; 2: 1 12; 2~ ; 1~ 7; 0~ 14; ");
}

TEST(Engine, HandsOnToAStageThatReadsThreeOthers) {
  Sample sample({0, 0, 0, 1}, {"0F0 0SEND_F0>3 1F0 1SEND_F0>3 2F0 2SEND_F0",
                               "3RECV_F0<0 3RECV_F0<1 3RECV_F0 3F0"});
  sample.skips = {{0, 3}, {1, 3}};
  sample.hasBackward = false;
  EXPECT_EQ(seenBy<Numbers>(sample), "0:; 1: 1; 2: 12; 3: 1 12 123; ");
}

TEST(Engine, EndsAllReceivesOfABatchTogether) {
  for (bool isBatch : {false, true}) {
    Sample sample({0, 1}, {"", isBatch ? "1RECV_F0 +1RECV_F1 1F0 1F1"
                                       : "1RECV_F0 1RECV_F1 1F0 1F1"});
    sample.hasBackward = false;
    Program program = sample.program();
    FailingTransport endpoint;
    RecordingStage stage;
    std::string received;
    stage.atWork = [&](const ActionContext &) {
      received += std::to_string(endpoint.received) + " ";
    };
    Stats stats = run(program, 1, stage, endpoint);
    EXPECT_EQ(received, isBatch ? "2 2 " : "1 2 ");
    EXPECT_EQ(endpoint.recycled, 2u);
    EXPECT_EQ(stats.receives, 2u);
  }
}

/// Where each slice of a trace is.
std::vector<std::string> slicesOf(const Program &program, const Trace &trace) {
  std::ostringstream out;
  writeTrace(out, program, trace);
  std::vector<std::string> found;
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) {
    const std::string before = "\"name\":\"";
    size_t name = line.find(before);
    if (line.find("\"ph\":\"X\"") != std::string::npos)
      found.push_back(line.substr(name + before.size(),
                                  line.find('"', name + before.size()) - name -
                                      before.size()));
  }
  return found;
}

TEST(Engine, TracesWhatEndedOfARunThatFailed) {
  Sample sample({0, 1}, {"", "1RECV_F0 1RECV_F1 1F0 1F1"});
  sample.hasBackward = false;
  Program program = sample.program();
  Trace trace(2);
  FailingTransport endpoint;
  RecordingStage stage;
  stage.atWork = [](const ActionContext &work) {
    if (work.microbatch == 0)
      throw std::runtime_error("broken");
  };
  EXPECT_NE(
      errorOf([&] { run(program, 1, stage, endpoint, {.trace = &trace}); }),
      "");
  EXPECT_THAT(slicesOf(program, trace), ElementsAre("1RECV_F0"));
  const std::vector<TraceEvent> &events = trace.rank(1).all();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_GE(events[0].end, events[0].start);
  EXPECT_GE(events[0].waited, 0);
  EXPECT_LE(events[0].waited, events[0].end - events[0].start);
  EXPECT_EQ(events[1].end, TraceEvent::open);

  // A second run forgets the first.
  stage.atWork = nullptr;
  FailingTransport fresh;
  run(program, 1, stage, fresh, {.trace = &trace});
  EXPECT_THAT(
      slicesOf(program, trace),
      testing::UnorderedElementsAre("1RECV_F0", "1RECV_F1", "1F0", "1F1"));
}

} // namespace
