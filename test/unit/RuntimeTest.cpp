// The parts of the engine: tables, programs made by hand, and damaged files.
#include "ppcc/Runtime/Cooperative.h"
#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Watchdog.h"

#include <future>
#include <gmock/gmock.h>
#include <map>
#include <memory>
#include <random>

using namespace ppcc::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

TEST(MicrobatchMap, HoldsWhatASetHolds) {
  std::mt19937_64 random(7);
  // Neighbours, and microbatches that share a cell of each smaller ring.
  for (uint32_t stride : {1u, 3u, 1u << 10}) {
    MicrobatchMap<uint32_t> ring;
    std::map<uint32_t, uint32_t> map;
    for (uint32_t step = 1; step != 20000; ++step) {
      uint32_t microbatch = uint32_t(random() % 200) * stride - 50 * stride;
      uint32_t *found = ring.find(microbatch);
      auto expected = map.find(microbatch);
      ASSERT_EQ(found != nullptr, expected != map.end());
      EXPECT_EQ(ring.insert(microbatch, step), !found);
      if (!found) {
        map[microbatch] = step;
        continue;
      }
      EXPECT_EQ(*ring.find(microbatch), expected->second);
      ring.erase(microbatch);
      map.erase(expected);
    }
    std::map<uint32_t, uint32_t> visited;
    ring.forEach([&](uint32_t m) { visited[m] = *ring.find(m); });
    EXPECT_EQ(visited, map);
    // No larger than the distance of what it holds asks for.
    EXPECT_LE(ring.size(), 256 * std::bit_ceil(stride));
  }
  MicrobatchMap<uint32_t> ring;
  EXPECT_TRUE(ring.insert(0, 1));
  EXPECT_TRUE(ring.insert(1 << 21, 1));
  EXPECT_THROW(ring.insert(1 << 22, 1), std::runtime_error);
}

/// Notes what runs.
struct RecordingStage : StageHooks {
  using Value = int;
  std::vector<std::string> done;

  void note(const ActionContext &work) {
    done.push_back(std::to_string(work.stage) +
                   work.program->kinds[work.kind].mnemonic +
                   std::to_string(work.microbatch));
  }
  int forward(const ActionContext &work, const Inputs<int> &inputs) {
    note(work);
    return inputs.empty() ? int(work.microbatch) : inputs[0] + 100;
  }
  int backward(const ActionContext &work, int *) {
    note(work);
    return 0;
  }
};

constexpr Kind kinds[] = {
    {"F", KindClass::Compute, slot::Output, 0},
    {"B", KindClass::Compute, slot::InputGrad | slot::WeightGrad, slot::Output},
    {"SEND_F", KindClass::Send, slot::Output, 0},
    {"RECV_F", KindClass::Recv, slot::Output, 0},
};
constexpr uint32_t rankOfStage[] = {0, 1};
constexpr Pipe pipes[] = {{"main", 0, 6, rankOfStage, {}}};
constexpr const char *phases[] = {""};
constexpr Site sites[] = {{-1, 0, 0, 0}};
constexpr uint16_t none = Row::noPeer;

// Forward-only, 6 microbatches: one, then twice two, then one.
constexpr Row sends[] = {
    {0, 0, 0, 0, none, 0, 0}, {2, 0, 0, 0, 1, 0, 0}, {0, 0, 0, 1, none, 0, 0},
    {0, 0, 0, 2, none, 0, 0}, {2, 0, 0, 1, 1, 0, 0}, {2, 0, 0, 2, 1, 0, 0},
    {0, 0, 0, 5, none, 0, 0}, {2, 0, 0, 5, 1, 0, 0},
};
constexpr Segment sendLoops[] = {{0, 2, 1, 0}, {2, 4, 2, 2}, {6, 2, 1, 0}};
// The same, one microbatch after another.
constexpr Row receives[] = {{3, 0, 1, 0, 0, 0, 0}, {0, 0, 1, 0, none, 0, 0}};
constexpr Segment receiveLoops[] = {{0, 2, 6, 1}};

Program loops(ArrayView<RankProgram> ranks) {
  return {abiVersion, 2,      "loops", false, kinds,
          pipes,      phases, {},      sites, ranks};
}

std::vector<RecordingStage> runNotes(const Program &program) {
  std::vector<RecordingStage> stages(program.numRanks);
  runCooperative(program, std::span(stages));
  return stages;
}

/// What the run of a program throws.
std::string failureOf(const Program &program) {
  try {
    runNotes(program);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(Engine, RunsSegmentsAsOftenAsTheySay) {
  RankProgram ranks[] = {{sends, {}, sendLoops}, {receives, {}, receiveLoops}};
  std::vector<RecordingStage> stages = runNotes(loops(ranks));
  EXPECT_THAT(stages[0].done,
              ElementsAre("0F0", "0F1", "0F2", "0F3", "0F4", "0F5"));
  EXPECT_THAT(stages[1].done,
              ElementsAre("1F0", "1F1", "1F2", "1F3", "1F4", "1F5"));
}

TEST(Engine, RefusesSegmentsThatLeaveTheProgram) {
  auto with = [](ArrayView<Segment> segments) {
    RankProgram ranks[] = {{sends, {}, segments}, {receives, {}, receiveLoops}};
    return failureOf(loops(ranks));
  };
  Segment tooLong[] = {{6, 3, 1, 0}}, tooFar[] = {{6, 2, 2, 1}},
          empty[] = {{0, 2, 0, 1}}, nowhere[] = {{~uint64_t(0), 2, 1, 0}},
          tooLow[] = {{6, 2, 7, -1}}, inPlace[] = {{6, 2, 2, 0}},
          huge[] = {{6, 2, UINT32_MAX, INT32_MAX}},
          hugeDown[] = {{6, 2, UINT32_MAX, INT32_MIN}};
  EXPECT_THAT(with(tooLong), HasSubstr("leaves its rows"));
  EXPECT_THAT(with(nowhere), HasSubstr("leaves its rows"));
  EXPECT_THAT(with(tooFar), HasSubstr("no microbatch 6"));
  EXPECT_THAT(with(tooLow), HasSubstr("no microbatch -1"));
  EXPECT_THAT(with(inPlace), HasSubstr("repeats the same microbatches"));
  EXPECT_THAT(with(huge), HasSubstr("no microbatch 9223372028264841223"));
  EXPECT_THAT(with(hugeDown), HasSubstr("no microbatch -9223372032559808507"));
  EXPECT_THAT(with(empty), HasSubstr("is empty"));
}

TEST(Engine, RunsSegmentsDownwards) {
  constexpr Row forward[] = {{0, 0, 0, 5, none, 0, 0}, {2, 0, 0, 5, 1, 0, 0}};
  constexpr Row read[] = {{3, 0, 1, 5, 0, 0, 0}, {0, 0, 1, 5, none, 0, 0}};
  constexpr Segment down[] = {{0, 2, 6, -1}};
  RankProgram ranks[] = {{forward, {}, down}, {read, {}, down}};
  std::vector<RecordingStage> stages = runNotes(loops(ranks));
  EXPECT_THAT(stages[0].done,
              ElementsAre("0F5", "0F4", "0F3", "0F2", "0F1", "0F0"));
  EXPECT_THAT(stages[1].done,
              ElementsAre("1F5", "1F4", "1F3", "1F2", "1F1", "1F0"));
}

TEST(Engine, HoldsNoMoreThanTheCompilerCounted) {
  static constexpr Row receiveTwo[] = {{3, 0, 1, 0, 0, 0, 0},
                                       {3, 0, 1, 1, 0, 0, 0},
                                       {0, 0, 1, 0, none, 0, 0},
                                       {0, 0, 1, 1, none, 0, 0}};
  static constexpr Segment thrice[] = {{0, 4, 3, 2}};
  auto with = [&](uint32_t buffers, uint32_t activations) {
    RankProgram ranks[] = {{sends, {}, sendLoops},
                           {receiveTwo, {}, thrice, buffers, activations}};
    return failureOf(loops(ranks));
  };
  // Forwards without a backward count until the end.
  EXPECT_EQ(with(2, 6), "");
  EXPECT_THAT(with(2, 5), HasSubstr("begins more activations than the 5"));
  EXPECT_EQ(with(0, 0), ""); // Unknown.
  EXPECT_THAT(with(1, 6), HasSubstr("1RECV_F1: posts more receives than the 1 "
                                    "that the compiler counted"));
  // Members of a group begin together.
  constexpr Row both[] = {{0, 0, 0, 0, none, 0, 0},
                          {0, 0, 0, 1, none, Row::joinedBit, 0}};
  constexpr Segment once[] = {{0, 2, 1, 0}};
  RankProgram alone[] = {{both, {}, once, 0, 1}, {}};
  EXPECT_THAT(failureOf(loops(alone)),
              HasSubstr("0F1: begins more activations than the 1 that the "
                        "compiler counted"));
}

/// A value that counts how many of it are there.
struct CountedValue {
  static inline int live = 0, most = 0;
  std::unique_ptr<int> number;

  static CountedValue make() {
    most = std::max(most, ++live);
    return {std::unique_ptr<int>(new int)};
  }
  CountedValue() = default;
  CountedValue(std::unique_ptr<int> &&number) : number(std::move(number)) {}
  CountedValue(CountedValue &&other) = default;
  CountedValue &operator=(CountedValue &&other) {
    std::swap(number, other.number);
    other.clear();
    return *this;
  }
  ~CountedValue() { clear(); }
  void clear() {
    live -= number != nullptr;
    number.reset();
  }
};

struct CountedStage : StageHooks {
  using Value = CountedValue;
  CountedValue forward(const ActionContext &work,
                       const Inputs<CountedValue> &) {
    return work.isLast() ? CountedValue() : CountedValue::make();
  }
};

TEST(Engine, FreesWhatIsRead) {
  constexpr Row receiveTwo[] = {{3, 0, 1, 0, 0, 0, 0},
                                {3, 0, 1, 1, 0, 0, 0},
                                {0, 0, 1, 0, none, 0, 0},
                                {0, 0, 1, 1, none, 0, 0}};
  constexpr Row sendOne[] = {{0, 0, 0, 0, none, 0, 0}, {2, 0, 0, 0, 1, 0, 0}};
  constexpr Segment thrice[] = {{0, 4, 3, 2}}, sixTimes[] = {{0, 2, 6, 1}};
  RankProgram ranks[] = {{sendOne, {}, sixTimes}, {receiveTwo, {}, thrice, 2}};
  Program program = loops(ranks);
  auto run = [&](WaitPolicy waitPolicy) {
    CountedValue::most = 0;
    std::vector<CountedStage> stages(2);
    std::vector<Stats> stats =
        runCooperative(program, std::span(stages), {.waitPolicy = waitPolicy});
    EXPECT_EQ(CountedValue::live, 0);
    EXPECT_EQ(stats[1].peakReceives, 2u);
  };
  // Where each send waits for its receive, there is a value for each of the two
  // buffers, and the one that is sent.
  run(WaitPolicy::Rendezvous);
  EXPECT_EQ(CountedValue::most, 3);
  // Else the sender keeps what nobody has asked for.
  run(WaitPolicy::Posted);
  EXPECT_EQ(CountedValue::most, 6);
}

TEST(Engine, SaysWhatIsWrongWithAnOrder) {
  auto with = [](std::initializer_list<Row> rows, bool backward) {
    std::vector<Row> copy = rows;
    Segment segment{0, uint32_t(copy.size()), 1, 0};
    RankProgram ranks[] = {{{copy.data(), copy.size()}, {}, {&segment, 1}}, {}};
    Program program = loops(ranks);
    program.hasBackward = backward;
    return failureOf(program);
  };
  Row f0{0, 0, 0, 0, none, 0, 0}, b0{1, 0, 0, 0, none, 0, 0},
      send0{2, 0, 0, 0, 1, 0, 0};
  EXPECT_THAT(with({b0}, true), HasSubstr("0B0: runs without its forward"));
  EXPECT_THAT(with({f0, f0}, true), HasSubstr("0F0: runs twice"));
  EXPECT_THAT(with({f0, f0}, false), HasSubstr("0F0: runs twice"));
  EXPECT_THAT(with({f0, b0}, true),
              HasSubstr("0B0: needs the gradient of stage 1"));
  EXPECT_THAT(with({send0}, false),
              HasSubstr("0SEND_F0: the data of this send"));
  EXPECT_THAT(with({f0}, false), HasSubstr("have not been read"));
}

/// Has nobody to talk to, and notes with whom it was to connect.
struct NoPeers {
  std::vector<uint32_t> connected;
  bool isLate = false;

  uint32_t numRanks() const { return 3; }
  void connect(uint32_t other, std::chrono::milliseconds) {
    connected.push_back(other);
    if (isLate)
      throw TimedOut();
  }
  void send(uint32_t, Message<int> &&) {}
  void postReceive(uint32_t, const Label &, size_t) {}
  bool receive(uint32_t, Message<int> &, std::chrono::milliseconds) {
    return false;
  }
  bool sendsMatched(uint32_t, std::chrono::milliseconds) { return true; }
  void finish(std::chrono::milliseconds) {}
  void fail(const std::string &) {}
};

TEST(Engine, ConnectsInTheOrderOfTheProgram) {
  RankProgram ranks[3];
  RankPair pairs[] = {{1, 2}, {0, 1}, {0, 2}};
  Program program = loops(ranks);
  program.numRanks = 3;
  program.pipes = {};
  program.preconnect = pairs;
  RecordingStage stage;
  NoPeers endpoint;
  run(program, 2, stage, endpoint);
  EXPECT_THAT(endpoint.connected, ElementsAre(1, 0));

  endpoint.isLate = true;
  std::string error;
  try {
    run(program, 0, stage, endpoint, {.timeout = std::chrono::seconds(1)});
  } catch (const Error &thrown) {
    error = thrown.what();
  }
  EXPECT_EQ(error, "rank 0: has waited 1000 ms for the connection to rank 1");

  RankPair strange[] = {{0, 3}};
  program.preconnect = strange;
  EXPECT_THAT(failureOf(program), HasSubstr("connects rank 0 to rank 3"));
}

TEST(Restored, KnowsRowsAndLoops) {
  Kind again{"R", KindClass::Declared, 0, 0};
  again.restores = slot::Output;
  Kind all[] = {kinds[0], again};
  // Microbatch 7, then 1, 3 and 5 of stage 0, and 6, 5 of stage 1.
  constexpr Row rows[] = {{1, 0, 0, 7, none, 0, 0},
                          {1, 0, 0, 1, none, 0, 0},
                          {1, 0, 1, 6, none, 0, 0}};
  constexpr Segment segments[] = {{0, 1, 1, 0}, {1, 1, 3, 2}, {2, 1, 2, -1}};
  RankProgram rank{rows, {}, segments};
  Program program{};
  program.kinds = all;
  program.ranks = {&rank, 1};
  Restored restored(program, 0);
  std::vector<uint32_t> found[2];
  for (uint16_t stage : {0, 1})
    for (uint32_t microbatch = 0; microbatch != 10; ++microbatch)
      if (restored.has({0, 0, stage, microbatch, none, 0, 0}, slot::Output))
        found[stage].push_back(microbatch);
  EXPECT_THAT(found[0], ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(found[1], ElementsAre(5, 6));
  EXPECT_FALSE(restored.has({0, 0, 0, 7, none, 0, 0}, slot::InputGrad));
  EXPECT_FALSE(restored.has({0, 1, 0, 7, none, 0, 0}, slot::Output));
}

TEST(Engine, ReadsPackedRows) {
  // 1RECV_F5 with site 3 of a group: each field has bytes of its own.
  constexpr char bytes[] = "\003\001\002\004\005\006\007\010\011\012"
                           "\013\214\015\016\017\020";
  RankProgram rank{{}, {bytes, sizeof(bytes) - 1}, {}};
  ASSERT_EQ(rank.numRows(), 1u);
  Row row = rank.row(0);
  EXPECT_EQ(row.kind, 3);
  EXPECT_EQ(row.pipe, 1);
  EXPECT_EQ(row.stage, 0x0402);
  EXPECT_EQ(row.microbatch, 0x08070605u);
  EXPECT_EQ(row.peer, 0x0A09);
  EXPECT_EQ(row.phase(), 0x0C0B);
  EXPECT_TRUE(row.joined());
  EXPECT_EQ(row.site, 0x100F0E0Du);
}

const std::string pair = R"({
"format": "ppcc.program", "version": 1, "compiler": "ppcc", "schedule": "pair",
"params": {"M": 2}, "ranks": 2, "backward": true, "transports": [],
"kinds": [{"mnemonic": "F", "class": "compute", "new": [{}]},
 {"mnemonic": "B", "class": "compute"}, {"mnemonic": "SEND_F", "class": "send"},
 {"mnemonic": "RECV_F", "class": "recv"}, {"mnemonic": "SEND_B", "class": "send"},
 {"mnemonic": "RECV_B", "class": "recv"}],
"phases": ["", "go"],
"pipes": [{"name": "main", "microbatches": [0,2], "rank_of_stage": [0, 1],
 "skip_edges": []}],
"files": ["pair.pp"], "sites": [[-1,0,0,0], [0,8,31,0], [0,9,35,1]],
"columns": ["kind", "pipe", "stage", "microbatch", "peer", "phase", "group",
 "site"],
"actions": [
[[0,0,0,0,-1,1,-1,1],[2,0,0,0,1,1,-1,1],[0,0,0,1,-1,1,-1,1],
[2,0,0,1,1,1,0,1],[5,0,0,0,1,1,0,2],[1,0,0,0,-1,1,-1,2],[5,0,0,1,1,1,-1,2],
[1,0,0,1,-1,1,-1,2]],
[[3,0,1,0,0,1,-1,1],[0,0,1,0,-1,1,-1,1],[1,0,1,0,-1,1,-1,2],
[4,0,1,0,0,1,3,2],[3,0,1,1,0,1,3,1],[0,0,1,1,-1,1,-1,1],
[1,0,1,1,-1,1,-1,2],[4,0,1,1,0,1,-1,2]]],
"later": {"a": [[1]]}
}
)";

/// Reads and runs a file; what is wrong with it, or nothing.
std::string readError(const std::string &text) {
  try {
    return failureOf(readJson(text));
  } catch (const Error &error) {
    return error.what();
  }
}

TEST(Json, SaysWhatIsWrong) {
  ASSERT_EQ(readError(pair), "");
  auto after = [](const std::string &from, const std::string &to) {
    std::string text = pair;
    text.replace(text.find(from), from.size(), to);
    return readError(text);
  };
  EXPECT_THAT(after("\"version\": 1", "\"version\": 4"),
              HasSubstr("version 4, this engine reads versions 1, 2 and 3"));
  EXPECT_THAT(after("ppcc.program", "other"), HasSubstr("`other`"));
  EXPECT_THAT(after("\"files\": [\"pair.pp\"], ", ""),
              HasSubstr("no key `files`"));
  EXPECT_THAT(after("\"compiler\"", "\"ranks\""),
              HasSubstr("`ranks` is of another form"));
  EXPECT_THAT(after("\"phases\"", "\"kinds\""), HasSubstr("two keys `kinds`"));
  EXPECT_THAT(after("\"SEND_B\"", "\"FLY\""), HasSubstr("action `FLY`"));
  EXPECT_THAT(after("\"new\": [{}]", "\"restores\": \"G\""),
              HasSubstr("no kind `G` to restore"));
  EXPECT_EQ(after("\"new\": [{}]", "\"collective\": [0, -1]"), "");
  EXPECT_THAT(after("\"new\": [{}]", "\"collective\": [70000]"),
              HasSubstr("no action is of stage 70000"));
  EXPECT_THAT(after("\"new\": [{}]", "\"collective\": \"some\""),
              HasSubstr("no ranks are called `some`"));
  EXPECT_THAT(after("\"send\"", "\"recv\""), HasSubstr("of class `recv`"));
  EXPECT_THAT(after("\"site\"]", "\"seat\"]"), HasSubstr("column `site`"));
  EXPECT_THAT(after("[0,0,0,0,-1,1,-1,1]", "[0,0,0,0,-1,1,-1]"),
              HasSubstr("7 numbers for 8 columns"));
  EXPECT_THAT(after("[0,0,0,0,-1,1,-1,1]", "[0,0,9,0,-1,1,-1,1]"),
              HasSubstr("row 0 of rank 0 has no stage 9"));
  EXPECT_THAT(after("[0,0,0,0,-1,1,-1,1]", "[0,0,1,0,-1,1,-1,1]"),
              HasSubstr("stage 1, which is on rank 1"));
  EXPECT_THAT(after("[0,0,0,0,-1,1,-1,1]", "[0,0,0,0,-1,1,-1,3]"),
              HasSubstr("no site 3"));
  EXPECT_THAT(after("[0,0,0,0,-1,1,-1,1]", "[0,0,0,5000000000,-1,1,-1,1]"),
              HasSubstr("microbatch: 5000000000"));
  EXPECT_THAT(after("[2,0,0,0,1,1,-1,1]", "[2,0,0,0,0,1,-1,1]"),
              HasSubstr("no message to exchange with stage 0"));
  EXPECT_THAT(after("\"rank_of_stage\": [0, 1]", "\"rank_of_stage\": [0, 2]"),
              HasSubstr("a stage on rank 2"));
  EXPECT_THAT(after("[3,0,1,0,0,1,-1,1]", "[3,0,1,1,0,1,-1,1]"),
              HasSubstr("1F0 (pair.pp:8:31): needs the output of stage 0"));
  EXPECT_EQ(after("\"columns\"", "\"preconnect\": [[0,1]], \"columns\""), "");
  EXPECT_THAT(after("\"columns\"", "\"preconnect\": [[1,0]], \"columns\""),
              HasSubstr("connects rank 1 to rank 0"));
  EXPECT_THAT(after("\"columns\"", "\"preconnect\": [[0]], \"columns\""),
              HasSubstr("a pair of `preconnect`"));
  EXPECT_THAT(after("pair.pp", "pair\\u0000.pp"), HasSubstr("zero byte"));
  EXPECT_THAT(readError(""), HasSubstr("program.json, byte"));
  EXPECT_THAT(readError("[]"), HasSubstr("not an object"));
  EXPECT_THAT(readError(pair + "{}"), HasSubstr("program.json, byte"));
  EXPECT_THAT(readError(std::string(100000, '[')), HasSubstr("program.json"));
}

/// What is wrong with `pair` once `from` is `to`.
std::string readErrorAfter(const std::string &from, const std::string &to) {
  std::string text = pair;
  text.replace(text.find(from), from.size(), to);
  return readError(text);
}

TEST(Json, NeedsEachKeyOnce) {
  for (std::string key :
       {"format", "version", "schedule", "ranks", "backward", "kinds", "phases",
        "pipes", "files", "sites", "columns", "actions"}) {
    EXPECT_THAT(readErrorAfter("\"" + key + "\":", "\"other\":"),
                HasSubstr(key == "columns"
                              ? "`columns` does not come before `actions`"
                              : "there is no key `" + key + "`"));
    EXPECT_THAT(readErrorAfter("\"later\"", "\"" + key + "\""),
                HasSubstr("there are two keys `" + key + "`"));
  }
  for (std::string key : {"loops", "buffers", "peak_activations", "preconnect"})
    EXPECT_THAT(
        readErrorAfter("\"later\"", "\"" + key + "\": [], \"" + key + "\""),
        HasSubstr("there are two keys `" + key + "`"));
  EXPECT_EQ(readErrorAfter("\"skip_edges\": []", "\"rank_of_stage\": [0]"),
            "program.json: there are two keys `rank_of_stage` in `pipes`");
  EXPECT_EQ(readErrorAfter("\"new\": [{}]", "\"mnemonic\": \"B\""),
            "program.json: there are two keys `mnemonic` in `kinds`");
  EXPECT_EQ(readErrorAfter("\"compiler\"", "\"later\""),
            ""); // Unknown: as often
                 // as it likes.
}

TEST(Json, HasListsForAllRanks) {
  EXPECT_THAT(readErrorAfter("\"ranks\": 2", "\"ranks\": 3"),
              HasSubstr("there are actions for 2 of 3 ranks"));
  for (std::string key : {"buffers", "peak_activations"}) {
    auto with = [&](const std::string &list) {
      return readErrorAfter("\"later\"",
                            "\"" + key + "\": " + list + ", \"x\"");
    };
    EXPECT_EQ(with("[]"), "");
    EXPECT_EQ(with("[4, 4]"), "");
    EXPECT_EQ(with("[0, 4294967295]"), "");
    EXPECT_EQ(with("[4]"),
              "program.json: there are `" + key + "` for 1 of 2 ranks");
    EXPECT_EQ(with("[4, 4, 4]"),
              "program.json: there are `" + key + "` for 3 of 2 ranks");
    EXPECT_EQ(with("[4, 4294967296]"),
              "program.json: " + key + ": 4294967296 is not in 0..4294967295");
    EXPECT_EQ(with("[-1, 4]"),
              "program.json: " + key + ": -1 is not in 0..4294967295");
    EXPECT_EQ(with("[[1], [1]]"),
              "program.json: the value of `" + key + "` is of another form");
  }
}

/// A number of a file, and the largest that it may be.
struct NumericField {
  const char *name;
  std::string from, to; ///< `@` stands for the number.
  int64_t least, most;
  const char *refusal = " is not in 0..";
};

TEST(Json, HoldsNumbersAsFarAsTheyFit) {
  const std::string row = "[0,0,0,0,-1,1,-1,1]", site = "[0,8,31,0]",
                    tensors = "\"skip_edges\": []";
  constexpr int64_t most32 = 4294967295, mostStage = 65534;
  NumericField fields[] = {
      {"version", "\"version\": 1", "\"version\": @", 1, 3, "it has version "},
      {"ranks", "\"ranks\": 2", "\"ranks\": @", 0, 1 << 20},
      {"kind", row, "[@,0,0,0,-1,1,-1,1]", 0, 255},
      {"pipe", row, "[0,@,0,0,-1,1,-1,1]", 0, 255},
      {"stage", row, "[0,0,@,0,-1,1,-1,1]", 0, mostStage},
      {"microbatch", row, "[0,0,0,@,-1,1,-1,1]", -1, most32 - 1},
      {"peer", row, "[0,0,0,0,@,1,-1,1]", -1, mostStage},
      {"phase", row, "[0,0,0,0,-1,@,-1,1]", 0, 32767},
      {"group", row, "[0,0,0,0,-1,1,@,1]", INT64_MIN, INT64_MAX},
      {"site", row, "[0,0,0,0,-1,1,-1,@]", 0, most32},
      {"file", site, "[@,8,31,0]", -1, INT32_MAX, "a site has no file"},
      {"line", site, "[0,@,31,0]", 0, most32},
      {"column", site, "[0,8,@,0]", 0, most32},
      {"caller", site, "[0,8,31,@]", 0, most32},
      {"first microbatch", "[0,2]", "[@,4294967295]", 0, most32},
      {"last microbatch", "[0,2]", "[0,@]", 0, most32},
      {"rank of a stage", "[0, 1]", "[0, @]", 0, most32},
      {"skip from", tensors, "\"skip_edges\": [[@,1]]", 0, mostStage},
      {"skip to", tensors, "\"skip_edges\": [[0,@]]", 0, mostStage},
      {"gap", tensors, "\"gaps\": [@]", 0, mostStage},
      {"slices", tensors, "\"slices\": @", 0, most32},
      {"edge from", tensors, "\"tensors\": [{\"edge\": [@,1]}]", 0, mostStage},
      {"edge to", tensors, "\"tensors\": [{\"edge\": [0,@]}]", 0, mostStage},
      {"dim", tensors,
       "\"tensors\": [{\"edge\": [0,1], \"carries\": [{\"name\": \"x\", "
       "\"type\": \"f32\", \"dims\": [@]}]}]",
       -1, INT64_MAX, "a tensor has the size "},
      {"member", "\"new\": [{}]", "\"collective\": [@]", -mostStage, mostStage,
       "no action is of stage "},
      {"low rank", "\"later\"", "\"preconnect\": [[@,1]], \"x\"", 0, most32},
      {"high rank", "\"later\"", "\"preconnect\": [[0,@]], \"x\"", 0, most32},
      {"first row", "\"later\"", "\"loops\": [[[@,1,1,1]],[]], \"x\"", 0,
       most32},
      {"rows", "\"later\"", "\"loops\": [[[0,@,1,1]],[]], \"x\"", 0, most32},
      {"turns", "\"later\"", "\"loops\": [[[0,1,@,1]],[]], \"x\"", 0, most32},
      {"advance", "\"later\"", "\"loops\": [[[0,1,1,@]],[]], \"x\"", INT32_MIN,
       INT32_MAX, "adds too much"},
  };
  for (const NumericField &field : fields) {
    auto with = [&](const std::string &number) {
      std::string to = field.to;
      to.replace(to.find('@'), 1, number);
      return readErrorAfter(field.from, to);
    };
    // What fits may be wrong elsewhere.
    using testing::Not;
    for (int64_t fits : {field.least, field.most})
      EXPECT_THAT(with(std::to_string(fits)), Not(HasSubstr(field.refusal)))
          << field.name;
    if (field.least != INT64_MIN) {
      EXPECT_THAT(with(std::to_string(field.least - 1)),
                  HasSubstr(field.refusal))
          << field.name;
    }
    EXPECT_THAT(with(std::to_string(uint64_t(field.most) + 1)),
                HasSubstr(field.most == INT64_MAX ? "a number is too large"
                                                  : field.refusal))
        << field.name;
    for (const char *wrong : {"0.5", "1e0", "null", "true", "\"1\"", "{}"})
      EXPECT_THAT(with(wrong), HasSubstr("is of another form"))
          << field.name << " " << wrong;
  }
}

TEST(Json, HoldsListsOfTheRightLength) {
  auto list = [](size_t length, const char *item) {
    std::string text = "[";
    for (size_t i = 0; i != length; ++i)
      text += std::string(i == 0 ? "" : ",") + item;
    return text + "]";
  };
  const std::string row = "[0,0,0,0,-1,1,-1,1]";
  EXPECT_EQ(readErrorAfter(row, list(64, "0")),
            "program.json: an action has 64 numbers for 8 columns");
  EXPECT_EQ(readErrorAfter(row, list(65, "0")),
            "program.json: a list of `actions` is too long");
  EXPECT_THAT(readErrorAfter("\"site\"]", "\"site\", \"new\"]"),
              HasSubstr("8 numbers for 9 columns"));
  std::string names = "\"site\"";
  for (int i = 8; i != 64; ++i)
    names += ", \"new\"";
  EXPECT_THAT(readErrorAfter("\"site\"]", names + "]"),
              HasSubstr("8 numbers for 64 columns"));
  EXPECT_THAT(readErrorAfter("\"site\"]", names + ", \"new\"]"),
              HasSubstr("there are too many columns"));
  EXPECT_THAT(readErrorAfter("[0,8,31,0]", "[0,8,31]"),
              HasSubstr("a site has fewer than 4 numbers"));
  EXPECT_EQ(readErrorAfter("[0,8,31,0]", "[0,8,31,0,5]"), "");
  EXPECT_THAT(readErrorAfter("[0,2]", "[0]"), HasSubstr("are not two numbers"));
  EXPECT_THAT(readErrorAfter("[0,2]", "[0,2,2]"),
              HasSubstr("are not two numbers"));
  EXPECT_THAT(readErrorAfter("[0,2]", "[2,0]"),
              HasSubstr("end before they begin"));
  EXPECT_THAT(readErrorAfter("\"skip_edges\": []", "\"skip_edges\": [[0]]"),
              HasSubstr("a skip edge is not two numbers"));
  EXPECT_THAT(readErrorAfter("\"later\"", "\"preconnect\": [[0,1,1]], \"x\""),
              HasSubstr("a pair of `preconnect` is not two numbers"));
  // The program is one level, its unknown key another.
  EXPECT_EQ(readErrorAfter("{\"a\": [[1]]}",
                           std::string(63, '[') + std::string(63, ']')),
            "");
  EXPECT_THAT(readErrorAfter("{\"a\": [[1]]}",
                             std::string(64, '[') + std::string(64, ']')),
              HasSubstr("it is nested too deeply"));
}

TEST(Json, KeepsWhatTheFileSays) {
  auto text =
      [](std::initializer_list<std::pair<const char *, const char *>> changes) {
        std::string text = pair;
        for (auto [from, to] : changes)
          text.replace(text.find(from), std::string(from).size(), to);
        return text;
      };
  LoadedProgram plain = readJson(pair);
  const Program &program = plain;
  EXPECT_STREQ(program.name, "pair");
  EXPECT_STREQ(program.pipes[0].name, "main");
  auto joined = [](const Program &program) {
    std::string marks;
    for (const RankProgram &rank : program.ranks)
      for (const Row &row : rank.rows)
        marks += row.joined() ? '+' : '.';
    return marks;
  };
  EXPECT_EQ(joined(program), "....+.......+...");
  // A group ends with its rank, and where another begins.
  EXPECT_EQ(
      joined(readJson(text({{"[1,0,0,1,-1,1,-1,2]]", "[1,0,0,1,-1,1,5,2]]"},
                            {"[3,0,1,0,0,1,-1,1]", "[3,0,1,0,0,1,5,1]"}}))),
      "....+.......+...");
  EXPECT_EQ(
      joined(readJson(text({{"[3,0,1,1,0,1,3,1]", "[3,0,1,1,0,1,4,1]"}}))),
      "....+...........");

  LoadedProgram declared = readJson(
      text({{"\"skip_edges\": []", "\"skip_edges\": [], \"slices\": 2"},
            {"\"later\"", "\"buffers\": [3, 4], \"later\""},
            {"\"kinds\": [",
             // With the key of development versions before 0.1.0.
             "\"kinds\": [{\"mnemonic\": \"S\", \"class\": \"declared\", "
             "\"collective\": [0, -1], \"restores\": \"F\"},"
             "{\"mnemonic\": \"A\", \"class\": \"declared\", "
             "\"collective\": \"all\"},"
             "{\"mnemonic\": \"R\", \"class\": \"declared\", "
             "\"collective\": \"replicas\"},"
             "{\"mnemonic\": \"O\", \"class\": \"declared\", "
             "\"collective\": \"outside data\"},"},
            {"\"actions\": [", "\"actions\": [[],[]], \"x\": ["}}));
  const Program &other = declared;
  EXPECT_EQ(other.pipes[0].slices, 2u);
  EXPECT_EQ(other.ranks[1].receiveBuffers, 4u);
  EXPECT_EQ(other.kinds[0].kindClass, KindClass::Declared);
  EXPECT_EQ(other.kinds[0].collective, Collective::Stages);
  EXPECT_EQ(other.kinds[0].restores, slot::Output);
  EXPECT_THAT(std::vector<int32_t>(other.kinds[0].stages.begin(),
                                   other.kinds[0].stages.end()),
              ElementsAre(0, -1));
  EXPECT_EQ(other.kinds[1].collective, Collective::All);
  EXPECT_EQ(other.kinds[2].collective, Collective::Replicas);
  EXPECT_EQ(other.kinds[3].collective, Collective::Outside);

  LoadedProgram edges = readJson(text(
      {{"\"rank_of_stage\": [0, 1]", "\"rank_of_stage\": [0, 1, 1, 0]"},
       {"\"skip_edges\": []", "\"skip_edges\": [[0,2],[1,3]], \"gaps\": [0,2]"},
       {"\"actions\": [", "\"actions\": [[],[]], \"x\": ["}}));
  const Pipe &pipe = edges.program().pipes[0];
  ASSERT_EQ(pipe.skipEdges.size, 2u);
  EXPECT_EQ(pipe.skipEdges[1].from, 1);
  EXPECT_EQ(pipe.skipEdges[1].to, 3);
  EXPECT_THAT(std::vector<uint16_t>(pipe.gaps.begin(), pipe.gaps.end()),
              ElementsAre(0, 2));
}

/// What the watchdog asks is the user's, and may take its time.
TEST(Watchdog, GivesUpWhoeverDoesNotAnswer) {
  struct Shared {
    std::promise<void> asked, answer, handled;
  };
  auto shared = std::make_shared<Shared>();
  Watchdog watchdog(
      std::chrono::seconds(60),
      [shared] {
        shared->asked.set_value();
        shared->answer.get_future().wait_for(std::chrono::seconds(5));
        return std::optional<std::string>();
      },
      [shared](const std::optional<std::string> &) {
        shared->handled.set_value();
      });
  watchdog.heartbeat();
  shared->asked.get_future().wait();
  EXPECT_FALSE(watchdog.triggerNow(std::chrono::milliseconds(20)));
  watchdog.idle();
  shared->answer.set_value();
  shared->handled.get_future().wait();
}

TEST(Json, IsAnObjectOfThisForm) {
  EXPECT_THAT(readError("true"), HasSubstr("is of another form"));
  EXPECT_THAT(readError("5"), HasSubstr("is of another form"));
  EXPECT_THAT(readError("\"x\""), HasSubstr("is of another form"));
  EXPECT_THAT(readError("null"), HasSubstr("is of another form"));
  EXPECT_THAT(readErrorAfter("\"backward\": true", "\"backward\": 1"),
              HasSubstr("the value of `backward` is of another form"));
  EXPECT_THAT(readErrorAfter("\"ranks\": 2", "\"ranks\": false"),
              HasSubstr("the value of `ranks` is of another form"));
  EXPECT_THAT(readErrorAfter("\"mnemonic\": \"B\"", "\"mnemonic\": \"F\""),
              HasSubstr("kind `F` is there twice"));
  EXPECT_THAT(readErrorAfter("\"mnemonic\": \"F\", ", ""),
              HasSubstr("a kind has no mnemonic"));
  EXPECT_THAT(readErrorAfter(", \"class\": \"compute\"", ""),
              HasSubstr("kind `F` is of class ``"));
  // What was said of a kind is not said of the next.
  EXPECT_THAT(readErrorAfter("{\"mnemonic\": \"B\", \"class\": \"compute\"}",
                             "{\"mnemonic\": \"B\"}"),
              HasSubstr("kind `B` is of class ``"));
}

TEST(Json, LooksAtTheRowsOfEachRank) {
  std::string text = pair, rows = text.substr(text.find("[[0,0,0,0,-1"));
  rows = rows.substr(0, rows.find("]],") + 2);
  text.replace(text.find(rows), rows.size(), "[]");
  EXPECT_NO_THROW(readJson(text));
  std::string last = "[1,0,1,1,";
  text.replace(text.find(last), last.size(), "[1,0,1,9,");
  try {
    readJson(text);
    ADD_FAILURE() << "rank 1 has no microbatch 9";
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(),
                 "bad program: row 6 of rank 1 has no microbatch 9");
  }
}

TEST(Json, ReadsTensors) {
  auto with = [](const std::string &tensors) {
    std::string text = pair, before = "\"skip_edges\": []";
    text.replace(text.find(before), before.size(),
                 before + ", \"tensors\": " + tensors);
    return text;
  };
  LoadedProgram loaded = readJson(with(
      R"([{"edge": [0,1], "shapes": "each", "new": {"x": [[1]]}, "carries": [
 {"name": "hidden", "type": "bf16", "dims": [8, -1]},
 {"name": "scale", "new": [1, "y"], "type": "f32", "dims": []}]}])"));
  const Program &program = loaded;
  EXPECT_TRUE(program.shapesVary());
  ASSERT_EQ(program.pipes[0].tensors.size, 1u);
  const EdgeTensors &edge = program.pipes[0].tensors[0];
  EXPECT_EQ(edge.from, 0);
  EXPECT_EQ(edge.to, 1);
  ASSERT_EQ(edge.tensors.size, 2u);
  EXPECT_STREQ(edge.tensors[0].name, "hidden");
  EXPECT_STREQ(edge.tensors[0].type, "bf16");
  EXPECT_THAT(std::vector<int64_t>(edge.tensors[0].dims.begin(),
                                   edge.tensors[0].dims.end()),
              ElementsAre(8, -1));
  EXPECT_EQ(edge.tensors[1].dims.size, 0u);
  EXPECT_FALSE(readJson(with(R"([{"edge": [0,1], "carries": []}])"))
                   .program()
                   .shapesVary());

  EXPECT_THAT(readError(with(R"([{"carries": []}])")), HasSubstr("on no edge"));
  EXPECT_THAT(readError(with(R"([{"edge": [0,1]}, {"carries": []}])")),
              HasSubstr("on no edge"));
  EXPECT_FALSE(readJson(with(R"([{"edge": [0,1], "shapes": "each", "carries": [
 {"name": "x", "type": "f32", "dims": [-1]}]}, {"edge": [0,1]}])"))
                   .program()
                   .pipes[0]
                   .tensors[1]
                   .shapesVary);
  EXPECT_THAT(readError(with(R"([{"edge": [0,1], "carries": [
 {"name": "x", "type": "f32", "dims": [-1]}]}])")),
              HasSubstr("shapes are sent exactly if a size is -1"));
  EXPECT_THAT(readError(with(R"([{"edge": [0,1], "shapes": "each"}])")),
              HasSubstr("shapes are sent exactly if a size is -1"));
  EXPECT_THAT(readError(with(R"([{"edge": [0]}])")),
              HasSubstr("no two stages"));
  EXPECT_THAT(readError(with(R"([{"edge": [0,1,1]}])")),
              HasSubstr("no two stages"));
  EXPECT_THAT(readError(with(R"([{"edge": [1,0]}])")),
              HasSubstr("no edge from stage 1 to stage 0"));
  EXPECT_THAT(readError(with(R"([{"edge": [0,1], "shapes": "late"}])")),
              HasSubstr("cannot be sent `late`"));
  EXPECT_THAT(
      readError(with(R"([{"edge": [0,1], "carries": [{"name": "x"}]}])")),
      HasSubstr("no name, or no type"));
  EXPECT_THAT(readError(with(R"([{"edge": [0,1], "carries": [{"name": "x",
 "type": "f32"}, {"type": "f32"}]}])")),
              HasSubstr("no name, or no type"));
  EXPECT_THAT(readError(with(R"([{"edge": [0,1], "carries": [{"name": "x",
 "type": "f32", "dims": [-2]}]}])")),
              HasSubstr("the size -2"));
}

TEST(Json, ReadsLoops) {
  // Forward-only, on one rank: the microbatches 0, 1 3 5, 4 2.
  auto with = [](const std::string &keys, const std::string &version = "2") {
    return R"({"format": "ppcc.program", "version": )" + version +
           R"(, "schedule": "loops", "ranks": 1, "backward": false,
"kinds": [{"mnemonic": "F", "class": "compute"}], "phases": [""], "files": [],
"sites": [[-1,0,0,0]], "pipes": [{"name": "main", "microbatches": [0,6],
 "rank_of_stage": [0], "skip_edges": []}],
"columns": ["kind", "pipe", "stage", "microbatch", "peer", "phase", "group",
 "site"],
"actions": [[[0,0,0,0,-1,0,-1,0],[0,0,0,1,-1,0,-1,0],[0,0,0,4,-1,0,-1,0]]])" +
           keys + "}";
  };
  LoadedProgram program =
      readJson(with(", \"loops\": [[[1,1,3,2],[2,1,2,-2]]]"));
  EXPECT_THAT(runNotes(program)[0].done,
              ElementsAre("0F0", "0F1", "0F3", "0F5", "0F4", "0F2"));
  EXPECT_THAT(readError(with("")),
              HasSubstr("the forward of microbatch 2 on stage 0 is missing"));
  EXPECT_THAT(readError(with(", \"peak_activations\": [2]")),
              HasSubstr("begins more activations than the 2"));

  auto wrong = [&](const std::string &loops) {
    return readError(with(", \"loops\": " + loops));
  };
  EXPECT_THAT(wrong("[]"), HasSubstr("microbatch 2 on stage 0 is missing"));
  EXPECT_THAT(wrong("[[],[]]"), HasSubstr("`loops` for 2 of 1 ranks"));
  EXPECT_THAT(wrong("[[[1,1,3]]]"), HasSubstr("not four numbers"));
  EXPECT_THAT(wrong("[[1]]"), HasSubstr("`loops` is of another form"));
  EXPECT_THAT(wrong("[[[2,2,1,1]]]"), HasSubstr("leaves the actions"));
  EXPECT_THAT(wrong("[[[4294967295,4294967295,1,1]]]"),
              HasSubstr("leaves the actions"));
  EXPECT_THAT(wrong("[[[1,2,1,1],[2,1,1,1]]]"), HasSubstr("overlaps"));
  EXPECT_THAT(wrong("[[[2,1,1,1],[1,1,1,1]]]"), HasSubstr("overlaps"));
  EXPECT_THAT(wrong("[[[1,1,0,1]]]"), HasSubstr("is empty"));
  EXPECT_THAT(wrong("[[[1,0,2,1]]]"), HasSubstr("is empty"));
  EXPECT_THAT(wrong("[[[1,1,9,0]]]"), HasSubstr("the same microbatches"));
  EXPECT_THAT(wrong("[[[1,1,4,2]]]"), HasSubstr("no microbatch 7"));
  EXPECT_THAT(wrong("[[[1,1,3,-1]]]"), HasSubstr("no microbatch -1"));
  EXPECT_THAT(wrong("[[[1,1,4294967295,2147483647]]]"),
              HasSubstr("no microbatch 9223372028264841219"));
  EXPECT_THAT(wrong("[[[1,1,4294967296,1]]]"), HasSubstr("loops: 4294967296"));
  EXPECT_THAT(wrong("[[[1,1,2,2147483648]]]"), HasSubstr("adds too much"));
  EXPECT_THAT(readError(with(", \"peak_activations\": [1,1]")),
              HasSubstr("`peak_activations` for 2 of 1 ranks"));
}

TEST(Json, DamageIsAnErrorOrAnotherProgram) {
  size_t end = pair.rfind('}');
  for (size_t size = 0; size != end; ++size)
    ASSERT_NE(readError(pair.substr(0, size)), "") << size;
  size_t refused = 0, tried = 0;
  for (size_t i = 0; i != end; ++i)
    for (char c : {'0', '1', '7', '-', 'x', ',', ']', '"'}) {
      std::string text = pair;
      text[i] = c;
      refused += readError(text) != "";
      ++tried;
    }
  // A place, a phase or the name of something unknown may change unseen.
  EXPECT_GT(refused, tried / 2);
}

} // namespace
