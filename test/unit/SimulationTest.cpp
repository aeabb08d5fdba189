// What the simulation gives beside the times, which MakespanTest and
// test/property compare.
#include "Injected.h"
#include "RandomProgram.h"
#include "Rows.h"

#include "ppcc/Analysis/Report/MemoryCurve.h"
#include "ppcc/Analysis/Report/Report.h"

#include <gtest/gtest.h>

using namespace ppcc;

namespace {

constexpr Time u = cost::unit;

constexpr const char *transports[] = {
    "buffered", "buffered:1", "buffered:2",      "rendezvous",
    "posted",   "stream",     "stream-per-peer", "stream-per-edge"};

std::optional<Simulation> simulated(const Program &program,
                                    llvm::StringRef transport) {
  ProgramIndex index(program);
  return simulate(program, index, MessageIndex(program, index),
                  Durations(program), *findTransport(transport));
}

/// Random programs with messages, and their runs on all transports.
template <class Check> void forEachRun(Check check) {
  for (unsigned seed = 0; seed != 100; ++seed) {
    Program program =
        injected(RandomProgram(seed, 0).program, seed % 2 ? "late" : "sweep");
    for (const char *transport : transports)
      if (auto run = simulated(program, transport)) {
        SCOPED_TRACE(fmt::format("seed {} on {}", seed, transport));
        check(program, *run);
      }
  }
}

TEST(Simulation, TheCriticalPathFillsTheMakespan) {
  forEachRun([](const Program &program, const Simulation &run) {
    std::vector<ActionId> path = criticalPath(run);
    ASSERT_FALSE(path.empty());
    EXPECT_EQ(run.ends[path.back().value], run.makespan);
    Time before = 0;
    for (ActionId row : path) {
      if (program.kindOf(row).isCompute()) {
        EXPECT_EQ(run.starts[row.value], before) << cell(program, program[row]);
      }
      EXPECT_GE(run.ends[row.value], before) << cell(program, program[row]);
      before = run.ends[row.value];
    }
  });
}

TEST(Simulation, WorkAndBubblesFillTheMakespan) {
  forEachRun([](const Program &program, const Simulation &run) {
    Durations durations(program);
    TimedRun timed{durations, run, ""};
    Bubbles bubbles(program, timed);
    std::vector<RankTimes> times = rankTimes(program, durations, run);
    for (uint32_t rank = 0; rank != program.numRanks(); ++rank) {
      Time sum = 0, last = 0;
      bubbles.walk(RankId(rank), [&](const Bubble &bubble) {
        EXPECT_LE(last, bubble.begin);
        EXPECT_LT(bubble.begin, bubble.end);
        EXPECT_TRUE(bubble.cause != BubbleCause::Rank ||
                    bubble.awaited != RankId(rank));
        last = bubble.end;
        sum += bubble.end - bubble.begin;
      });
      // On one queue a group may last longer than its compute actions.
      EXPECT_LE(sum + times[rank].busy, run.makespan);
    }
  });
}

TEST(Simulation, BubblesSayWhatIsWaitedFor) {
  Program program = programFromRows({"0F0 0B0", "1F0 1B0"});
  program.editHead().costs.add(Cost::Latency, u / 2);
  ProgramIndex index(program);
  Durations durations(program);
  TimedRun timed{durations, *simulate(program, index, durations), ""};
  std::vector<std::string> texts;
  for (uint32_t rank : {0, 1})
    Bubbles(program, timed).walk(RankId(rank), [&](const Bubble &bubble) {
      texts.push_back(fmt::format(
          "{}: {}-{} {} {}", rank, cost::format(bubble.begin),
          cost::format(bubble.end), int(bubble.cause), bubble.awaited.value));
    });
  EXPECT_EQ(texts, (std::vector<std::string>{"0: 1-4.5 0 1", "0: 4.5-5 1 0",
                                             "1: 0-1 0 0", "1: 1-1.5 1 1",
                                             "1: 4.5-7 2 1"}));
}

TEST(Simulation, HangsWhereTheTransportDoes) {
  Program program =
      injected(programFromRows({"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"}), "late");
  EXPECT_FALSE(simulated(program, "rendezvous"));
  EXPECT_FALSE(simulated(program, "stream"));
  EXPECT_TRUE(simulated(program, "buffered"));
  EXPECT_FALSE(simulated(programFromRows({"0F0 0SEND_F0", "1F0"}), "stream"));
}

TEST(Durations, EdgesHaveTheirOwnTimes) {
  Program program = programFromRows({"0F0", "1F0", "2F0"});
  auto edges = [&] {
    Durations durations(program);
    auto edge = [&](uint32_t from, uint32_t to) {
      return durations.ofEdge(PipeId(0), StageId(from), StageId(to), 0);
    };
    EXPECT_EQ(edge(0, 1), edge(1, 0));
    return std::pair(edge(0, 1), edge(1, 2));
  };
  EXPECT_EQ(edges(), std::pair(Time(0), Time(0)));
  program.editHead().costs.add(Cost::Latency, 3);
  EXPECT_EQ(edges(), std::pair(Time(3), Time(3)));
  program.editHead().costs.settings.push_back(
      {Cost::Latency, {}, {}, PipeId(0), {5, 7, 0}});
  EXPECT_EQ(edges(), std::pair(Time(5), Time(7)));
  program.editHead().costs.add(Cost::Bytes, 10 * amount::unit);
  EXPECT_EQ(edges(), std::pair(Time(5), Time(7))) << "without a bandwidth";
  program.editHead().costs.settings.push_back(
      {Cost::Bandwidth, {}, {}, PipeId(0), {4 * amount::unit}});
  EXPECT_EQ(edges(), std::pair(5 * u / 2 + 5, 5 * u / 2 + 7));
  program.editHead().costs.settings.push_back(
      {Cost::Bandwidth,
       {},
       {},
       PipeId(0),
       {3 * amount::unit, amount::unit, 1}});
  EXPECT_EQ(edges(), std::pair(Time(3'333'333'333) + 5, 10 * u + 7))
      << "rounded";
}

TEST(Durations, GroupsFollowTheirRule) {
  Program program = programFromRows({"(0F0;0B1)OVERLAP_F_B 0F2 0B0"});
  auto group = [&] {
    return Durations(program).of(program, ActionId(0), ActionId(2));
  };
  program.editHead().costs.add(Cost::GroupMax, u);
  EXPECT_EQ(group(), 2 * u);
  program.editHead().costs.add(Cost::GroupMax, u / 10 * 11);
  EXPECT_EQ(group(), u / 10 * 22);
  program.editHead().costs.add(Cost::GroupSum, u / 3);
  EXPECT_EQ(group(), Time(999'999'999));
  program.editHead().costs.add(Cost::Overlap, 7);
  EXPECT_EQ(group(), 7);
  EXPECT_EQ(Durations(program).of(program, ActionId(2), ActionId(3)), u);
}

TEST(MemoryCurve, ActionsTakeAndGiveBack) {
  Program program = programFromRows({"0F0 0F1 0I0 0B1 0W0"});
  ProgramIndex index(program);
  auto steps = [&] {
    auto run = simulate(program, index, Durations(program));
    MemoryCurve curve(program, *run);
    std::vector<std::string> texts;
    curve.walk(RankId(0), [&](const MemoryStep &step) {
      texts.push_back(fmt::format("{} {}: {} {}", cost::format(step.at),
                                  cell(program, program[step.row]),
                                  amount::format(step.memory),
                                  step.activations));
      return true;
    });
    return texts;
  };
  EXPECT_EQ(steps(), (std::vector<std::string>{"0 0F0: 1 1", "1 0F1: 2 2",
                                               "5 0B1: 1 1", "6 0W0: 0 0"}));
  Amount one = amount::unit;
  program.editHead().costs.add(Cost::Memory, KindId(kind::Forward), 3 * one);
  program.editHead().costs.add(Cost::Memory, KindId(kind::BackwardInput), -one);
  program.editHead().costs.add(Cost::StaticMemory, 10 * one);
  EXPECT_EQ(steps(), (std::vector<std::string>{"0 0F0: 13 1", "1 0F1: 16 2",
                                               "3 0I0: 15 2", "5 0B1: 12 1",
                                               "6 0W0: 10 0"}));
  program.editHead().costs.add(Cost::Memory, KindId(kind::BackwardWeight),
                               -one / 2);
  EXPECT_EQ(steps().back(), "6 0W0: 11.5 0");
}

} // namespace
