// Makespans against a relaxation of all constraints, and durations against the
// settings that they come from.
#include "Injected.h"
#include "RandomProgram.h"
#include "Rows.h"

#include "ppcc/Analysis/Run/Simulation.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace ppcc;

namespace {

constexpr Time u = cost::unit;

/// The least times that satisfy what the transport demands, found by raising
/// them until all of it holds.
class Relaxation {
public:
  explicit Relaxation(const Program &program)
      : start(program.size()), program(program), durations(program),
        end(program.size()) {}

  /// Nothing when there are no such times.
  std::optional<Time> run(bool withMessages) {
    for (size_t round = 0; round != 2 * program.size() + 2; ++round) {
      changed = false;
      for (uint32_t rank = 0; rank != program.numRanks(); ++rank)
        relax(RankId(rank), withMessages);
      if (!changed)
        return program.size() ? *std::max_element(end.begin(), end.end()) : 0;
    }
    return std::nullopt;
  }

  std::vector<Time> start;

private:
  void raise(Time &time, Time to) {
    changed |= to > time;
    time = std::max(time, to);
  }

  void relax(RankId rank, bool withMessages) {
    Time compute = 0, stream = 0;
    for (ActionId id = program.begin(rank); id != program.end(rank);) {
      ActionId last = program.groupEnd(id, rank);
      if (program.kindOf(id).isCompute()) {
        Time begin = compute;
        for (uint32_t row = id.value; row != last.value; ++row)
          begin = std::max(begin, inputs(rank, ActionId(row), withMessages));
        for (uint32_t row = id.value; row != last.value; ++row) {
          raise(start[row], begin);
          raise(end[row], start[row] + durations.of(program, id, last));
        }
        compute = end[id.value];
      } else if (withMessages) {
        raise(start[id.value], std::max(compute, stream));
        uint32_t other = peerRank(program[id]);
        raise(end[id.value], std::max(start[id.value], start[other]) +
                                 durations.ofMessage(program, program[id]));
        stream = end[id.value];
      }
      id = last;
    }
  }

  Time inputs(RankId rank, ActionId id, bool withMessages) {
    Action action = program[id];
    Time ready = 0;
    for (uint32_t row = 0; row != program.size(); ++row) {
      Action other = program[ActionId(row)];
      const KindInfo &info = program.kindOf(ActionId(row));
      uint8_t slots = info.defines & program.kindOf(id).defines;
      if (other.pipe != action.pipe || other.microbatch != action.microbatch)
        continue;
      if (info.kindClass == KindClass::Recv && withMessages && slots &&
          other.stage == action.stage)
        ready = std::max(ready, end[row]);
      for (uint8_t bit : {slot::Output, slot::InputGrad})
        for (StageId source :
             sourcesOf(program.pipes()[action.pipe.value], action.stage, bit))
          if (info.isCompute() && (slots & bit) && other.stage == source) {
            bool away = program.rankOf(ActionId(row)) != rank;
            if (!away || !withMessages)
              ready = std::max(
                  ready, end[row] + (away ? durations.ofEdge(
                                                action.pipe, source,
                                                action.stage, action.microbatch)
                                          : 0));
          }
    }
    return ready;
  }

  uint32_t peerRank(const Action &message) const {
    const KindInfo &info = program.kinds()[message.kind];
    for (uint32_t row = 0; row != program.size(); ++row) {
      Action other = program[ActionId(row)];
      const KindInfo &there = program.kinds()[other.kind];
      if (!there.isCompute() && there.kindClass != info.kindClass &&
          there.defines == info.defines && other.pipe == message.pipe &&
          other.microbatch == message.microbatch &&
          other.stage == message.peer && other.peer == message.stage)
        return row;
    }
    ADD_FAILURE() << "no other end of " << cell(program, message);
    return 0;
  }

  const Program &program;
  Durations durations;
  std::vector<Time> end;
  bool changed = false;
};

std::optional<Time> streamMakespan(const Program &program,
                                   const ProgramIndex &index,
                                   const Durations &durations,
                                   std::vector<Time> *ends = nullptr) {
  auto run = simulate(program, index, MessageIndex(program, index), durations,
                      *findTransport("stream"));
  if (run && ends)
    *ends = run->ends;
  return run ? std::optional(run->makespan) : std::nullopt;
}

std::optional<Simulation> dataOnly(const Program &program) {
  return simulate(program, ProgramIndex(program), Durations(program));
}

TEST(Makespan, AgreesWithTheRelaxation) {
  size_t hangs = 0;
  for (unsigned seed = 0; seed != 300; ++seed) {
    SCOPED_TRACE(seed);
    Program compute = RandomProgram(seed, 1).program;
    auto bound = dataOnly(compute);
    ASSERT_TRUE(bound);
    Relaxation relaxed(compute);
    EXPECT_EQ(bound->makespan, relaxed.run(false));
    EXPECT_EQ(bound->starts, relaxed.start);
    for (llvm::StringRef order : {"ready-time", "sweep", "late"}) {
      SCOPED_TRACE(order.str());
      Program program = injected(compute, order);
      ProgramIndex index(program);
      Durations durations(program);
      auto makespan = streamMakespan(program, index, durations);
      EXPECT_EQ(makespan, Relaxation(program).run(true));
      EXPECT_EQ(dataOnly(program)->makespan, bound->makespan);
      if (makespan) {
        EXPECT_GE(*makespan, bound->makespan);
      }
      hangs += !makespan;
    }
  }
  EXPECT_GT(hangs, 10u) << "some of the late ones";
}

TEST(Makespan, DataAloneAgreesWithTheRelaxation) {
  for (unsigned seed = 0; seed != 300; ++seed) {
    SCOPED_TRACE(seed);
    Program program = RandomProgram(seed, 0).program;
    auto run = dataOnly(program);
    ASSERT_TRUE(run);
    Relaxation relaxed(program);
    EXPECT_EQ(run->makespan, relaxed.run(false));
    EXPECT_EQ(run->starts, relaxed.start);
  }
}

TEST(Makespan, StartsAndEndsOfRows) {
  Program program = programFromRows({"0F0 0F1", "1F0 1F1"});
  program.editHead().costs.add(Cost::Latency, u / 2);
  std::vector<Time> ends;
  auto run = dataOnly(program);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->makespan, 7 * u / 2);
  EXPECT_EQ(run->starts, (std::vector<Time>{0, u, 3 * u / 2, 5 * u / 2}));

  program = injected(program, "late");
  EXPECT_EQ(
      streamMakespan(program, ProgramIndex(program), Durations(program), &ends),
      4 * u)
      << "the second receive waits for the first action";
  EXPECT_EQ(ends, (std::vector<Time>{u, 3 * u / 2, 2 * u, 3 * u, 3 * u / 2,
                                     5 * u / 2, 3 * u, 4 * u}));
}

TEST(Makespan, RanksThatWaitForEachOtherHaveNone) {
  Program program = programFromRows({"0B0 0F0", "1F0 1B0"});
  EXPECT_FALSE(dataOnly(program));
  program = injected(program, "late");
  EXPECT_EQ(streamMakespan(program, ProgramIndex(program), Durations(program)),
            std::nullopt);
}

TEST(Makespan, MessagesWithoutAnotherEndHaveNone) {
  Program program = programFromRows({"0F0 0SEND_F0", "1F0"});
  EXPECT_EQ(streamMakespan(program, ProgramIndex(program), Durations(program)),
            std::nullopt);
}

TEST(Durations, AKindTakesWhatItsPartsTake) {
  Program program = programFromRows({"0F0 1F0 1B0 0I0 0W0"});
  auto times = [&] {
    Durations durations(program);
    std::vector<Time> result;
    for (uint32_t row = 0; row != program.size(); ++row)
      result.push_back(durations.of(program[ActionId(row)]));
    return result;
  };
  EXPECT_EQ(times(), (std::vector<Time>{u, u, 2 * u, u, u}));
  program.editHead().costs.add(Cost::Action, KindId(kind::BackwardInput), 3);
  EXPECT_EQ(times(), (std::vector<Time>{u, u, u + 3, 3, u}));
  program.editHead().costs.settings.push_back(
      {Cost::Action, KindId(kind::BackwardWeight), {}, PipeId(0), {5, 7}});
  EXPECT_EQ(times(), (std::vector<Time>{u, u, 10, 3, 5}));
  program.editHead().costs.settings.push_back(
      {Cost::Action, KindId(kind::Backward), {}, PipeId(0), {9}});
  EXPECT_EQ(times(), (std::vector<Time>{u, u, 9, 3, 5}));
}

TEST(Durations, AGroupTakesItsMembersOrItsOwn) {
  Program program = programFromRows({"0F0 (0F1;0B0)OVERLAP_F_B 0B1"});
  auto group = [&] {
    return Durations(program).of(program, ActionId(1), ActionId(3));
  };
  EXPECT_EQ(group(), 3 * u);
  program.editHead().costs.add(Cost::Overlap, 5 * u / 2);
  EXPECT_EQ(group(), 5 * u / 2);
  EXPECT_EQ(Durations(program).of(program, ActionId(0), ActionId(1)), u);
}

TEST(Durations, TheSumIsBounded) {
  Program program = programFromRows({"0F0 0F1"});
  program.editHead().costs.add(Cost::Action, KindId(kind::Forward), cost::max);
  EXPECT_TRUE(Durations(program).fits(program, 1));
  program.editHead().costs.add(Cost::Latency, cost::max);
  EXPECT_FALSE(Durations(program).fits(program, 1));
}

TEST(Costs, TextAndNumbersAreExact) {
  for (auto [text, time] : {std::pair("0", Time(0)),
                            {"1", u},
                            {"0.05", u / 20},
                            {"1.000000001", u + 1},
                            {"999999999.999999999", cost::max - 1},
                            {"1000000000", cost::max}}) {
    EXPECT_EQ(cost::parse(text), time) << text;
    EXPECT_EQ(cost::format(time), text);
  }
  EXPECT_EQ(cost::parse("1.50"), 3 * u / 2);
  for (const char *text :
       {"", ".", "1.", ".5", "-1", "+1", "1e3", "0x1", "1 ", "1.0000000001",
        "1000000000.1", "1000000001", "18446744073709551616", "1.-5", "nan"})
    EXPECT_EQ(cost::parse(text), std::nullopt) << text;

  for (double value : {1.1e9, 1e308, HUGE_VAL, -HUGE_VAL, std::nan("")})
    EXPECT_FALSE(fromDouble(value, cost::scale));
  std::mt19937_64 random(1);
  for (int i = 0; i != 10000; ++i) {
    Time expected = random() % (4'000'000 * u);
    EXPECT_EQ(fromDouble(std::stod(cost::format(expected)), cost::scale),
              expected);
  }
}

} // namespace
