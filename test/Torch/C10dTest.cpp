// C10d between threads of one process, each with a group of its own.
#include "ppcc/Torch/C10d.h"
#include "ppcc/Torch/SharedWeights.h"

#include <ATen/ATen.h>

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <thread>
#include <unistd.h>

using namespace ppcc::rt;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::MatchesRegex;

namespace {

constexpr std::chrono::milliseconds timeout = 20s;

/// Runs `body` for each rank in a thread of its own; gives what each threw.
std::vector<std::string> onRanks(uint32_t numRanks,
                                 const std::function<void(C10d &)> &body) {
  static int number = 0;
  std::filesystem::path file = std::filesystem::temp_directory_path() /
                               ("ppcc-c10d-" + std::to_string(getpid()) + "-" +
                                std::to_string(number++));
  std::vector<std::string> errors(numRanks);
  {
    std::vector<std::jthread> threads;
    for (uint32_t rank = 0; rank != numRanks; ++rank)
      threads.emplace_back([&, rank] {
        try {
          C10d network = C10d::gloo(file, rank, numRanks);
          try {
            body(network);
          } catch (const PeerFailed &failure) {
            errors[rank] = "peer failed: " + failure.text;
            network.fail("in turn");
          } catch (const TimedOut &) {
            errors[rank] = "timed out";
            network.fail(errors[rank]);
          } catch (const std::exception &error) {
            errors[rank] = error.what();
            network.fail(errors[rank]);
          }
        } catch (const std::exception &error) {
          errors[rank] = error.what();
        }
      });
  }
  std::filesystem::remove(file);
  return errors;
}

void expectNone(const std::vector<std::string> &errors) {
  for (const std::string &error : errors)
    EXPECT_EQ(error, "");
}

Label label(uint8_t slot, uint32_t microbatch) {
  return {0, slot, 0, 1, microbatch};
}

TEST(C10d, CarriesTensorsOfAllShapes) {
  auto values = [](uint32_t m) {
    at::Tensor whole = at::arange(24, at::kDouble).view({4, 6}) + double(m);
    return Tensors{whole,
                   whole.t().to(at::kFloat),
                   at::Tensor(),
                   at::full({}, int64_t(m), at::kLong),
                   at::empty({0, 3}, at::kHalf),
                   at::ones({3}, at::kBool)};
  };
  expectNone(onRanks(2, [&](C10d &network) {
    constexpr uint32_t count = 10;
    if (network.rank() == 0) {
      for (uint32_t m = 0; m != count; ++m) {
        network.send(1, {label(slot::Output, m), values(m)});
        // Another edge to the same rank, in between.
        network.send(1, {label(slot::InputGrad, m), {at::ones({2}) * int(m)}});
      }
    } else {
      for (uint32_t m = 0; m != count; ++m) {
        network.postReceive(0, label(slot::Output, m), 0);
        network.postReceive(0, label(slot::InputGrad, m), 0);
      }
      for (uint32_t m = 0; m != count; ++m) {
        Message<Tensors> message{};
        network.receive(0, message, timeout);
        EXPECT_EQ(message.label, label(slot::Output, m));
        Tensors expected = values(m);
        ASSERT_EQ(message.value.size(), expected.size());
        for (size_t i = 0; i != expected.size(); ++i) {
          ASSERT_EQ(message.value[i].defined(), expected[i].defined());
          if (!expected[i].defined())
            continue;
          EXPECT_EQ(message.value[i].scalar_type(), expected[i].scalar_type());
          EXPECT_TRUE(message.value[i].equal(expected[i])) << i;
        }
        network.receive(0, message, timeout);
        EXPECT_EQ(message.label, label(slot::InputGrad, m));
        EXPECT_TRUE(message.value[0].equal(at::ones({2}) * int(m)));
      }
    }
    network.finish(timeout);
  }));
}

TEST(C10d, SaysWhichShapesChange) {
  std::vector<std::string> errors = onRanks(2, [&](C10d &network) {
    Message<Tensors> message{};
    if (network.rank() == 1) {
      network.postReceive(0, label(slot::Output, 0), 0);
      network.receive(0, message, timeout);
      network.postReceive(0, label(slot::Output, 1), 0);
      network.receive(0, message, timeout);
      return;
    }
    network.send(1, {label(slot::Output, 0), {at::ones({2, 3})}});
    network.send(1, {label(slot::Output, 1), {at::ones({2, 4})}});
  });
  EXPECT_EQ(errors[0], "it carries Float [2, 4], and the messages before it "
                       "Float [2, 3]: all microbatches must have the same "
                       "types and shapes");
  EXPECT_EQ(errors[1], "peer failed: " + errors[0]);
}

TEST(C10d, TellsEachLayout) {
  auto shapeOf = [](uint32_t microbatch) {
    return at::ones({2, 3 + int(microbatch)});
  };
  expectNone(onRanks(2, [&](C10d &network) {
    network.setDynamicShapes();
    for (uint32_t m : {0, 1, 2})
      if (network.rank() == 0)
        network.send(1, {label(slot::Output, m), {shapeOf(m), at::Tensor()}});
      else
        network.postReceive(0, label(slot::Output, m), 0);
    for (uint32_t m = 0; network.rank() == 1 && m != 3; ++m) {
      Message<Tensors> message{};
      network.receive(0, message, timeout);
      EXPECT_EQ(message.label, label(slot::Output, m));
      ASSERT_EQ(message.value.size(), 2u);
      EXPECT_TRUE(message.value[0].equal(shapeOf(m)));
      EXPECT_FALSE(message.value[1].defined());
    }
    network.finish(timeout);
  }));
}

TEST(C10d, AsidesHaveAnOrderOfTheirOwn) {
  expectNone(onRanks(2, [&](C10d &network) {
    if (network.rank() == 0) {
      network.send(1, {label(slot::Output, 0), {at::ones({2})}});
      network.sendSideChannel(1, {label(0, 7), {at::ones({5})}});
    } else {
      network.postReceive(0, label(slot::Output, 0), 0);
      Message<Tensors> aside = network.receiveSideChannel(0, timeout),
                       message{};
      EXPECT_EQ(aside.label, label(0, 7));
      EXPECT_TRUE(aside.value.at(0).equal(at::ones({5})));
      network.receive(0, message, timeout);
      EXPECT_EQ(message.label, label(slot::Output, 0));
    }
    network.finish(timeout);
  }));
}

TEST(C10d, SendsMeetTheirReceives) {
  std::atomic<bool> posted = false;
  expectNone(onRanks(2, [&](C10d &network) {
    Message<Tensors> message{};
    if (network.rank() == 1) {
      std::this_thread::sleep_for(100ms);
      posted = true;
      network.postReceive(0, label(slot::Output, 0), 0);
      network.receive(0, message, timeout);
    } else {
      network.send(1, {label(slot::Output, 0), {at::ones({1 << 16})}});
      network.sendsMatched(1, timeout);
      EXPECT_TRUE(posted);
    }
    network.finish(timeout);
  }));
}

TEST(C10d, WaitsNoLongerThanItMay) {
  std::vector<std::string> errors = onRanks(2, [&](C10d &network) {
    Message<Tensors> message{};
    if (network.rank() == 1)
      return std::this_thread::sleep_for(1s);
    network.postReceive(1, label(slot::Output, 0), 0);
    network.receive(1, message, 200ms);
  });
  EXPECT_EQ(errors[0], "timed out");
}

TEST(C10d, HearsOfThoseWhoLeave) {
  auto start = std::chrono::steady_clock::now();
  std::vector<std::string> errors = onRanks(3, [&](C10d &network) {
    Message<Tensors> message{};
    if (network.rank() == 2)
      throw std::runtime_error("out of luck");
    // 0 waits for 1, which waits for 2.
    network.postReceive(network.rank() + 1, label(slot::Output, 0), 0);
    network.receive(network.rank() + 1, message, timeout);
  });
  EXPECT_EQ(errors[0], "peer failed: out of luck");
  EXPECT_EQ(errors[1], "peer failed: out of luck");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

TEST(C10d, SendersHearToo) {
  std::vector<std::string> errors = onRanks(2, [&](C10d &network) {
    if (network.rank() == 1)
      throw std::runtime_error("out of luck");
    network.send(1, {label(slot::Output, 0), {at::ones({1 << 16})}});
    network.finish(timeout);
  });
  EXPECT_EQ(errors[0], "peer failed: out of luck");
}

/// Stages with nothing but weights.
struct Weights {
  Program program{};
  std::vector<uint32_t> rankOfStage;
  Pipe pipe{};
  std::vector<std::vector<Parameter>> ofRank;

  explicit Weights(std::vector<std::vector<Parameter>> ofRank)
      : ofRank(std::move(ofRank)) {
    for (uint32_t rank = 0; rank != this->ofRank.size(); ++rank)
      rankOfStage.push_back(rank);
    pipe = {"main", 0, 1, {rankOfStage.data(), rankOfStage.size()}, {}};
    program.numRanks = static_cast<uint32_t>(rankOfStage.size());
    program.pipes = {&pipe, 1};
  }
  TorchStage stage(uint32_t rank) const {
    Network network;
    network.make = [this](uint8_t, uint16_t stage) {
      return StageModule{{}, ofRank[stage]};
    };
    return TorchStage(program, rank, network);
  }
};

at::Tensor weight(double value, double grad) {
  at::Tensor result = at::full({2, 2}, value, at::kDouble);
  result.set_requires_grad(true);
  result.mutable_grad() = at::full({2, 2}, grad, at::kDouble);
  return result;
}

std::vector<std::vector<Parameter>> sharedByThree() {
  // `a` on all ranks and twice on rank 2, `b` on 1 and 2, the others alone.
  return {{{"a", weight(1, 1)}, {"own", weight(5, 7)}},
          {{"b", weight(2, 10)}, {"a", weight(1, 2)}},
          {{"a", weight(1, 4)}, {"b", weight(2, 20)}, {"a", weight(1, 8)}}};
}

void expectSums(const TorchStage &stage) {
  std::map<std::string, double> sums{{"a", 15}, {"b", 30}, {"own", 7}};
  for (const Parameter &parameter : stage.parameters())
    EXPECT_TRUE(parameter.value.grad().equal(
        at::full({2, 2}, sums.at(parameter.name), at::kDouble)))
        << parameter.name;
}

TEST(SharedWeights, SumOverThreads) {
  Weights weights(sharedByThree());
  std::vector<TorchStage> stages;
  for (uint32_t rank = 0; rank != 3; ++rank)
    stages.push_back(weights.stage(rank));
  SharedWeights shared((std::span(stages)));
  EXPECT_THAT(shared.names(), testing::ElementsAre("a", "b"));
  shared.reduceGradients();
  for (const TorchStage &stage : stages)
    expectSums(stage);
}

TEST(SharedWeights, SumOverProcesses) {
  Weights weights(sharedByThree());
  expectNone(onRanks(3, [&](C10d &network) {
    TorchStage stage = weights.stage(network.rank());
    SharedWeights shared(stage, network);
    shared.reduceGradients();
    expectSums(stage);
  }));
}

TEST(SharedWeights, MustBeginWithTheSame) {
  Weights weights({{{"a", weight(1, 0)}}, {{"a", weight(2, 0)}}});
  std::vector<TorchStage> stages;
  stages.push_back(weights.stage(0));
  stages.push_back(weights.stage(1));
  try {
    SharedWeights shared((std::span(stages)));
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("the weight `a` is Double [2, 2]"));
    EXPECT_THAT(error.what(), HasSubstr("on rank 1: stages that share a weight "
                                        "must begin with the same"));
  }
}

/// Passes its input on.
struct PassingStage : StageHooks {
  using Value = Tensors;
  uint32_t calls = 0;
  Tensors forward(const ActionContext &, const Inputs<Tensors> &inputs) {
    ++calls;
    return inputs.empty() ? Tensors{at::ones({2})} : inputs[0];
  }
};

/// Throws on rank 1, when all are under way.
struct ThrowingStage : PassingStage {
  std::chrono::steady_clock::time_point *thrown = nullptr;
  Tensors forward(const ActionContext &work, const Inputs<Tensors> &inputs) {
    if (work.rank == 1 && work.microbatch == 2) {
      *thrown = std::chrono::steady_clock::now();
      throw std::runtime_error("out of luck");
    }
    return PassingStage::forward(work, inputs);
  }
};

TEST(C10d, AStageThatThrowsEndsAllRanks) {
  constexpr uint32_t count = 100, numRanks = 3;
  constexpr uint16_t none = Row::noPeer;
  const Kind kinds[] = {{"F", KindClass::Compute, slot::Output, 0},
                        {"SEND_F", KindClass::Send, slot::Output, 0},
                        {"RECV_F", KindClass::Recv, slot::Output, 0}};
  const uint32_t rankOfStage[] = {0, 1, 2};
  const Pipe pipes[] = {{"main", 0, count, rankOfStage, {}}};
  const char *const phases[] = {""}, *const files[] = {"a.pp"};
  const Site sites[] = {{-1, 0, 0, 0}, {0, 3, 5, 0}};
  std::vector<Row> rows[numRanks];
  std::vector<Segment> segments(numRanks);
  std::vector<RankProgram> ranks;
  for (uint16_t rank = 0; rank != numRanks; ++rank) {
    for (uint32_t m = 0; m != count; ++m) {
      if (rank != 0)
        rows[rank].push_back({2, 0, rank, m, uint16_t(rank - 1), 0, 1});
      rows[rank].push_back({0, 0, rank, m, none, 0, 1});
      if (rank + 1u != numRanks)
        rows[rank].push_back({1, 0, rank, m, uint16_t(rank + 1), 0, 1});
    }
    segments[rank] = {0, uint32_t(rows[rank].size()), 1, 0};
    ranks.push_back(
        {{rows[rank].data(), rows[rank].size()}, {}, {&segments[rank], 1}});
  }
  Program program{
      abiVersion, numRanks, "throws", false, kinds,
      pipes,      phases,   files,    sites, {ranks.data(), numRanks}};
  std::chrono::steady_clock::time_point thrown;
  std::vector<std::string> errors = onRanks(numRanks, [&](C10d &network) {
    ThrowingStage stage;
    stage.thrown = &thrown;
    run(program, network.rank(), stage, network);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - thrown, 1s);
  std::string cause = "rank 1, 1F2 (a.pp:3:5): the stage threw: out of luck";
  EXPECT_EQ(errors[1], cause);
  // Rank 0 has nothing to wait for before its sends end.
  EXPECT_THAT(errors[0], HasSubstr("stopped, because " + cause));
  // Which of its actions rank 2 has come to is a matter of who is faster.
  EXPECT_THAT(errors[2], MatchesRegex("rank 2, 2F[012] \\(a.pp:3:5\\): .*"));
  EXPECT_THAT(errors[2], HasSubstr("stopped, because " + cause));
}

TEST(C10d, RefusesProgramsThatDifferInOneRow) {
  constexpr uint32_t count = 100;
  const Kind kinds[] = {{"F", KindClass::Compute, slot::Output, 0},
                        {"SEND_F", KindClass::Send, slot::Output, 0},
                        {"RECV_F", KindClass::Recv, slot::Output, 0}};
  const uint32_t rankOfStage[] = {0, 1};
  const Pipe pipes[] = {{"main", 0, count, rankOfStage, {}}};
  const char *const phases[] = {""};
  const Site sites[] = {{-1, 0, 0, 0}};
  const Segment segments[] = {{0, 2 * count, 1, 0}};
  std::vector<Row> rows[2];
  for (uint32_t m = 0; m != count; ++m) {
    rows[0].push_back({0, 0, 0, m, Row::noPeer, 0, 0});
    rows[0].push_back({1, 0, 0, m, 1, 0, 0});
    rows[1].push_back({2, 0, 1, m, 0, 0, 0});
    rows[1].push_back({0, 0, 1, m, Row::noPeer, 0, 0});
  }
  auto ranksOf = [&](const std::vector<Row>(&rows)[2]) {
    return std::vector<RankProgram>{
        {{rows[0].data(), rows[0].size()}, {}, segments},
        {{rows[1].data(), rows[1].size()}, {}, segments}};
  };
  auto programOf = [&](const std::vector<RankProgram> &ranks) {
    return Program{abiVersion, 2,      "pass", false, kinds,
                   pipes,      phases, {},     sites, {ranks.data(), 2}};
  };
  std::vector<RankProgram> ranks = ranksOf(rows);
  Program program = programOf(ranks);
  expectNone(onRanks(2, [&](C10d &network) {
    PassingStage stage;
    Session session(program, stage, network);
    for (uint32_t pair = 0; pair != count; ++pair) {
      std::vector<Row> others[] = {rows[0], rows[1]};
      Row &row = others[pair % 2][pair];
      row.microbatch = (row.microbatch + 1) % count;
      std::vector<RankProgram> otherRanks = ranksOf(others);
      Program other = programOf(otherRanks);
      try {
        session.link(network.rank() == 0 ? program : other);
        ADD_FAILURE() << "pair " << pair;
      } catch (const ProgramMismatch &error) {
        EXPECT_THAT(error.what(), HasSubstr(digestOf(program)));
        EXPECT_THAT(error.what(), HasSubstr(digestOf(other)));
        EXPECT_THAT(error.what(), HasSubstr(", that of rank "));
      }
    }
    EXPECT_EQ(stage.calls, 0u);
    session.link(program);
    session.step();
    session.step();
    EXPECT_EQ(stage.calls, 2 * count);
  }));
}

} // namespace
