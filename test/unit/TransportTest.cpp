// verify-transport agrees with a simulator that scans all actions again and
// again.
#include "ppcc/IR/Transport.h"
#include "ppcc/Compiler/Compiler.h"
#include "ppcc/Emit/Emitter.h"
#include "ppcc/Pass/PassRegistry.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace ppcc;

namespace {

using Random = std::mt19937;

uint32_t below(Random &random, uint32_t end) { return random() % end; }

/// Rows of each rank that are paired, but in whatever order chance makes.
class Generator {
public:
  explicit Generator(uint32_t seed) : random(seed) {}

  Program program() {
    Program program;
    program.editHead().numRanks = 2 + below(random, 3);
    Pipe pipe{"main", 0, 1 + below(random, 3), {}, {}};
    uint32_t stages = program.numRanks() + below(random, 3);
    for (uint32_t stage = 0; stage != stages; ++stage)
      pipe.rankOfStage.push_back(RankId(below(random, program.numRanks())));
    if (stages > 2 && below(random, 3) == 0)
      pipe.skipEdges.push_back({StageId(0), StageId(2)});
    program.editHead().hasBackward = below(random, 2);
    program.editHead().pipes.push_back(pipe);
    rows.assign(program.numRanks(), {});
    isInQueueOrder(program);
    disturb();
    for (std::vector<Action> &rank : rows) {
      program.editRows().beginRank();
      for (const Action &action : rank)
        program.editRows().append(action);
    }
    return program;
  }

private:
  /// Every action in one order that all ranks could follow together.
  void isInQueueOrder(const Program &program) {
    const Pipe &pipe = program.pipes()[0];
    for (uint32_t mb = 0; mb != pipe.numMicrobatches; ++mb) {
      for (uint32_t stage = 0; stage != pipe.numStages(); ++stage)
        add(pipe, kind::Forward, stage, mb);
      if (program.hasBackward())
        for (uint32_t stage = pipe.numStages(); stage-- != 0;)
          add(pipe, kind::Backward, stage, mb);
    }
  }

  void add(const Pipe &pipe, uint32_t kind, uint32_t stage, uint32_t mb) {
    bool forward = kind == kind::Forward;
    RankId rank = pipe.rankOfStage[stage];
    put(rank, kind, stage, mb, Action::noPeer);
    for (StageId reader : readersOf(pipe, StageId(stage),
                                    forward ? slot::Output : slot::InputGrad)) {
      RankId to = pipe.rankOfStage[reader.value];
      if (to == rank)
        continue;
      put(rank, forward ? kind::SendForward : kind::SendBackward, stage, mb,
          reader.value);
      put(to, forward ? kind::RecvForward : kind::RecvBackward, reader.value,
          mb, stage);
    }
  }

  void put(RankId rank, uint32_t kind, uint32_t stage, uint32_t mb,
           uint32_t peer) {
    Action action;
    action.kind = KindId(kind);
    action.stage = StageId(stage);
    action.microbatch = mb;
    action.peer = StageId(peer);
    rows[rank.value].push_back(action);
  }

  /// Moves some rows, and joins some.
  void disturb() {
    for (uint32_t moves = below(random, 4); moves != 0; --moves) {
      std::vector<Action> &rank = rows[below(random, rows.size())];
      if (rank.size() < 2)
        continue;
      size_t from = below(random, rank.size()), to = below(random, rank.size());
      Action moved = rank[from];
      rank.erase(rank.begin() + from);
      rank.insert(rank.begin() + to, moved);
    }
    uint32_t chance = below(random, 3) * 8;
    for (std::vector<Action> &rank : rows)
      for (Action &action : llvm::drop_begin(rank, !rank.empty()))
        action.joined = chance != 0 && below(random, chance) == 0;
  }

  Random random;
  std::vector<std::vector<Action>> rows;
};

/// What verification.md says, word for word: every condition is a scan.
class Simulator {
public:
  Simulator(const Program &program, const Transport &transport)
      : program(program), transport(transport) {
    for (uint32_t i = 0; i != program.size(); ++i) {
      if (!program.joined(ActionId(i)))
        ++groups;
      rows.push_back({program[ActionId(i)], program.rankOf(ActionId(i)), groups,
                      false, false, false});
    }
  }

  bool reachesItsEnd() {
    for (bool changed = true; changed;) {
      changed = false;
      for (Row &row : rows) {
        changed |= !row.started && canStart(row) && start(row);
        changed |= row.started && !row.completed && canComplete(row) &&
                   (row.completed = true);
        changed |= row.completed && !row.ended && unitCompleted(row) &&
                   (row.ended = true);
      }
    }
    return llvm::all_of(rows, [](const Row &row) { return row.ended; });
  }

private:
  struct Row {
    Action action;
    RankId rank;
    uint32_t group;
    bool started, completed, ended;
  };

  const KindInfo &info(const Row &row) const {
    return program.kinds()[row.action.kind];
  }
  RankId rankOf(StageId stage) const {
    return program.pipes()[0].rankOfStage[stage.value];
  }
  bool isOneUnit(const Row &a, const Row &b) const {
    return a.group == b.group && (!transport.hasStreams() ||
                                  info(a).isCompute() == info(b).isCompute());
  }
  bool sharesQueue(const Row &a, const Row &b) const {
    if (a.rank != b.rank)
      return false;
    if (transport.layout == QueueLayout::One)
      return true;
    if (info(a).isCompute() || info(b).isCompute())
      return info(a).isCompute() && info(b).isCompute();
    if (transport.layout == QueueLayout::Stream)
      return true;
    if (rankOf(a.action.peer) != rankOf(b.action.peer))
      return false;
    return transport.layout == QueueLayout::StreamPerPeer ||
           info(a).kindClass == info(b).kindClass;
  }

  /// All members of its unit can.
  bool canStart(const Row &first) const {
    return llvm::all_of(rows, [&](const Row &row) {
      return !isOneUnit(row, first) || memberCanStart(row);
    });
  }
  bool memberCanStart(const Row &row) const {
    for (const Row &other : rows) {
      if (other.ended)
        continue;
      bool before = &other < &row && other.group != row.group;
      if (before && sharesQueue(other, row))
        return false;
      if (before && transport.hasStreams() && other.rank == row.rank &&
          info(other).isCompute())
        return false;
      if (feeds(other, row))
        return false;
    }
    return true;
  }

  /// `row` reads what `maker` makes or receives.
  bool feeds(const Row &maker, const Row &row) const {
    const Action &made = maker.action, &read = row.action;
    if (made.microbatch != read.microbatch)
      return false;
    uint8_t slots = info(maker).defines;
    if (info(row).kindClass == KindClass::Recv ||
        info(maker).kindClass == KindClass::Send)
      return false;
    if (info(row).kindClass == KindClass::Send)
      return info(maker).isCompute() && made.stage == read.stage &&
             (slots & info(row).defines);
    if (info(maker).kindClass == KindClass::Recv)
      return made.stage == read.stage && (slots & info(row).defines);
    if (made.stage == read.stage)
      return slots & info(row).needs;
    for (uint8_t slotBit : {slot::Output, slot::InputGrad})
      if ((slots & info(row).defines & slotBit) &&
          rankOf(made.stage) == rankOf(read.stage) &&
          llvm::is_contained(sourcesOf(program.pipes()[0], read.stage, slotBit),
                             made.stage))
        return true;
    return false;
  }

  bool start(const Row &first) {
    for (Row &row : rows)
      if (isOneUnit(row, first))
        row.started = true;
    return true;
  }

  bool areSendAndReceive(const Row &send, const Row &recv) const {
    return info(send).kindClass == KindClass::Send &&
           info(recv).kindClass == KindClass::Recv &&
           info(send).defines == info(recv).defines &&
           send.action.microbatch == recv.action.microbatch &&
           send.action.stage == recv.action.peer &&
           send.action.peer == recv.action.stage;
  }
  bool canComplete(const Row &row) const {
    auto started = [](const Row &row) { return row.started; };
    if (info(row).kindClass == KindClass::Recv)
      return started(*llvm::find_if(rows, [&](const Row &other) {
        return areSendAndReceive(other, row);
      }));
    if (info(row).kindClass == KindClass::Compute ||
        transport.sendWait == SendWait::Nothing)
      return true;
    if (transport.sendWait == SendWait::Receive)
      return started(*llvm::find_if(rows, [&](const Row &other) {
        return areSendAndReceive(row, other);
      }));
    return hasCapacity(row);
  }

  /// The receive that is `capacity` before it on its edge has ended.
  bool hasCapacity(const Row &send) const {
    RankId to = rankOf(send.action.peer);
    size_t position = 0;
    for (const Row &row : rows)
      position += &row < &send && row.rank == send.rank &&
                  info(row).kindClass == KindClass::Send &&
                  rankOf(row.action.peer) == to;
    if (position < transport.capacity)
      return true;
    size_t wanted = position - transport.capacity;
    for (const Row &row : rows)
      if (row.rank == to && info(row).kindClass == KindClass::Recv &&
          rankOf(row.action.peer) == send.rank && wanted-- == 0)
        return row.completed;
    return false;
  }
  bool unitCompleted(const Row &first) const {
    return llvm::all_of(rows, [&](const Row &row) {
      return !isOneUnit(row, first) || row.completed;
    });
  }

  const Program &program;
  const Transport &transport;
  uint32_t groups = 0;
  std::vector<Row> rows;
};

/// The codes of what a pipeline reports on transports, with a space behind
/// each.
std::string codesOf(llvm::StringRef pipeline, Program &program,
                    std::vector<const char *> transports = {"stream"}) {
  std::string codes;
  Session session(llvm::vfs::getRealFileSystem());
  CommPolicy comm;
  comm.transports.clear();
  for (const char *name : transports)
    comm.transports.push_back(*findTransport(name));
  runPasses({pipeline.str()}, session, program, comm);
  for (const Diagnostic &found : session.found)
    codes.append(found.info().code).append(" ");
  return codes;
}

std::string textOf(const Program &program) {
  std::string text;
  llvm::raw_string_ostream out(text);
  printProgram(program, out);
  return text;
}

constexpr const char *names[] = {
    "buffered", "buffered:1", "buffered:2",      "rendezvous",
    "posted",   "stream",     "stream-per-peer", "stream-per-edge"};

} // namespace

TEST(Transport, verdictsAreThoseOfASlowSimulator) {
  std::map<std::string, unsigned> safe, unsafe;
  for (uint32_t seed = 0; seed != 4000; ++seed) {
    Program program = Generator(seed).program();
    for (const char *name : names) {
      Transport transport = *findTransport(name);
      std::string codes = codesOf("verify-transport", program, {name});
      bool expected = Simulator(program, transport).reachesItsEnd();
      ++(expected ? safe : unsafe)[name];
      if (expected)
        ASSERT_EQ(codes, "") << name << '\n' << textOf(program);
      else
        ASSERT_TRUE(codes == "E0765 " || codes == "E0766 ")
            << name << ": " << codes << '\n'
            << textOf(program);
    }
  }
  for (const char *name : names) {
    EXPECT_GT(safe[name], 400u) << name;
    EXPECT_GT(unsafe[name], 400u) << name;
  }
}

TEST(Transport, moreQueuesAndRoomNeverHarm) {
  auto isSafe = [](const char *name, const Program &program) {
    return Simulator(program, *findTransport(name)).reachesItsEnd();
  };
  constexpr std::pair<const char *, const char *> weaker[] = {
      {"rendezvous", "buffered:1"},  {"buffered:1", "buffered:2"},
      {"buffered:2", "buffered"},    {"rendezvous", "stream"},
      {"stream", "stream-per-peer"}, {"stream-per-peer", "stream-per-edge"},
      {"buffered", "posted"},        {"stream-per-edge", "posted"},
  };
  for (uint32_t seed = 0; seed != 1000; ++seed) {
    Program program = Generator(seed).program();
    for (auto [less, more] : weaker)
      ASSERT_LE(isSafe(less, program), isSafe(more, program))
          << less << " but not " << more << '\n'
          << textOf(program);
  }
}

TEST(Transport, namesAreReadStrictly) {
  for (const char *name : names)
    ASSERT_EQ(findTransport(name)->name, name);
  EXPECT_EQ(findTransport("buffered:17")->capacity, 17u);
  for (const char *name :
       {"", "buffered:", "buffered:0", "buffered:01", "buffered:-1",
        "buffered:k", "buffered:4294967296", "buffered :1", "stream:1",
        "Stream", "stream-per-", "buffered:1:2"})
    EXPECT_FALSE(findTransport(name)) << name;
}

TEST(Transport, proofsAreRecorded) {
  Program program = Generator(0).program();
  for (uint32_t seed = 1;
       !Simulator(program, *findTransport("rendezvous")).reachesItsEnd() ||
       codesOf("verify-matching", program) != "";
       ++seed)
    program = Generator(seed).program();
  EXPECT_EQ(codesOf("verify-transport", program, {"buffered:2", "rendezvous"}),
            "");
  EXPECT_EQ(program.provenUnder(),
            (std::vector<std::string>{"buffered:2", "rendezvous"}));
  codesOf("verify-transport", program, {"stream", "rendezvous"});
  EXPECT_EQ(program.provenUnder(),
            (std::vector<std::string>{"buffered:2", "rendezvous", "stream"}));
  EXPECT_TRUE(program.withRows(program.allRows()).provenUnder().empty());
}
