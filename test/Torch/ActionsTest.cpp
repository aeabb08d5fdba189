// What stages of LibTorch do for declared actions, in small programs.
#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Threads.h"
#include "ppcc/Torch/Checkpoint.h"
#include "ppcc/Torch/Optimizer.h"
#include "ppcc/Torch/SharedWeights.h"

#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <latch>
#include <set>
#include <sstream>
#include <unistd.h>

namespace nn = torch::nn;
using namespace ppcc::rt;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// What the letters of the tests are, in the order of their numbers.
constexpr const char *kinds[] = {
    R"({"mnemonic": "F", "class": "compute"})",
    R"({"mnemonic": "B", "class": "compute"})",
    R"({"mnemonic": "SEND_F", "class": "send"})",
    R"({"mnemonic": "RECV_F", "class": "recv"})",
    R"({"mnemonic": "SEND_B", "class": "send"})",
    R"({"mnemonic": "RECV_B", "class": "recv"})",
    R"({"mnemonic": "R", "class": "declared", "restores": "F"})",
    R"({"mnemonic": "RELEASE_OUT", "class": "declared"})",
    R"({"mnemonic": "RELEASE_IN", "class": "declared"})",
    R"({"mnemonic": "OFFLOAD", "class": "declared"})",
    R"({"mnemonic": "RELOAD", "class": "declared"})",
    R"({"mnemonic": "REDUCE_EMBEDDING", "class": "declared",
        "collective": [0, -1]})",
    R"({"mnemonic": "STEP", "class": "declared"})",
    R"({"mnemonic": "VALIDATE", "class": "declared", "collective": "all"})",
    R"({"mnemonic": "OWN", "class": "declared"})",
};

/// An action of the tests: `0F1`, `1SEND_F0>0` to another stage, `0STEP` of
/// none.
struct Cell {
  int stage;
  std::string mnemonic;
  int microbatch = -1, peer = -1, group = -1;
};

/// One stage a rank; the table has the kinds that the cells use.
LoadedProgram programOf(const std::vector<std::vector<Cell>> &ranks,
                        int microbatches) {
  std::vector<std::string> used;
  auto numberOf = [&](const std::string &mnemonic) {
    for (const char *kind : kinds)
      if (std::string(kind).find("\"" + mnemonic + "\",") !=
          std::string::npos) {
        auto found = std::find(used.begin(), used.end(), kind);
        if (found == used.end())
          found = used.insert(used.end(), kind);
        return std::to_string(found - used.begin());
      }
    throw std::runtime_error("no kind " + mnemonic);
  };
  numberOf("F");
  std::string actions, rankOfStage;
  for (const std::vector<Cell> &cells : ranks) {
    std::string rows;
    for (const Cell &cell : cells)
      rows += (rows.empty() ? "[" : ",[") + numberOf(cell.mnemonic) + ",0," +
              std::to_string(cell.stage) + "," +
              std::to_string(cell.microbatch) + "," +
              std::to_string(cell.peer) + ",0," + std::to_string(cell.group) +
              ",0]";
    rankOfStage +=
        (actions.empty() ? "" : ",") + std::to_string(&cells - ranks.data());
    actions += (actions.empty() ? "[" : ",[") + rows + "]";
  }
  std::string table;
  for (const std::string &kind : used)
    table += (table.empty() ? "" : ",") + kind;
  return readJson(
      R"({"format": "ppcc.program", "version": 1, "schedule": "small",
"ranks": )" +
      std::to_string(ranks.size()) + R"(, "backward": true, "kinds": [)" +
      table +
      R"(], "phases": [""], "files": [], "sites": [[-1,0,0,0]],
"pipes": [{"name": "main", "microbatches": [0,)" +
      std::to_string(microbatches) + R"(], "rank_of_stage": [)" + rankOfStage +
      R"(], "skip_edges": []}],
"columns": ["kind", "pipe", "stage", "microbatch", "peer", "phase", "group",
"site"], "actions": [)" +
      actions + "]}");
}

/// Layers whose forwards are counted.
struct Fixture {
  std::atomic<int> forwards = 0;
  double scale = 1; ///< Of the loss of microbatch 0.

  Network network() {
    Network network;
    network.make = [this](uint8_t, uint16_t) {
      torch::manual_seed(1);
      nn::Sequential layers(nn::Linear(6, 6), nn::Tanh(), nn::Linear(6, 6));
      layers->to(torch::kFloat64);
      StageModule stage = stageFromModule(layers.ptr(), "");
      stage.forward = [this, inner = stage.forward](const Tensors &in) {
        ++forwards;
        return inner(in);
      };
      return stage;
    };
    network.input = [](uint32_t m) {
      return Tensors{torch::full({3, 6}, 0.1 * (m + 1), torch::kFloat64)};
    };
    network.loss = [this](const Tensors &out, uint32_t m) {
      return out[0].pow(2).mean() * (m == 0 ? scale : 1);
    };
    return network;
  }
};

Tensors gradsOf(const TorchStage &stage) {
  Tensors grads;
  for (const Parameter &parameter : stage.parameters())
    grads.push_back(parameter.value.grad());
  return grads;
}

bool same(const Tensors &a, const Tensors &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto &x, const auto &y) { return x.equal(y); });
}

/// The gradients of one rank that runs these actions.
Tensors gradsWith(Fixture &given, const std::vector<Cell> &cells,
                  int microbatches, const TorchOptions &options = {}) {
  LoadedProgram program = programOf({cells}, microbatches);
  std::vector<TorchStage> stages;
  stages.emplace_back(program, 0, given.network(), options);
  runThreads(program.program(), std::span(stages));
  return gradsOf(stages[0]);
}

std::string errorOf(const std::vector<Cell> &cells,
                    const TorchOptions &options = {}) {
  Fixture given;
  try {
    gradsWith(given, cells, 1, options);
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

TEST(Actions, RecomputeWhatTheProgramRestores) {
  Fixture plain, some;
  Tensors expected =
      gradsWith(plain, {{0, "F", 0}, {0, "F", 1}, {0, "B", 0}, {0, "B", 1}}, 2);
  EXPECT_EQ(plain.forwards, 2);
  Tensors grads = gradsWith(
      some, {{0, "F", 0}, {0, "F", 1}, {0, "B", 0}, {0, "R", 1}, {0, "B", 1}},
      2);
  EXPECT_EQ(some.forwards, 3);
  EXPECT_TRUE(same(grads, expected));
}

TEST(Actions, OffloadsAndReloads) {
  Fixture plain, given;
  Tensors expected = gradsWith(plain, {{0, "F", 0}, {0, "B", 0}}, 1);
  EXPECT_TRUE(same(
      gradsWith(given,
                {{0, "F", 0}, {0, "OFFLOAD", 0}, {0, "RELOAD", 0}, {0, "B", 0}},
                1),
      expected));
}

TEST(Actions, RefuseToUseWhatIsGone) {
  EXPECT_THAT(errorOf({{0, "F", 0}, {0, "OFFLOAD", 0}, {0, "B", 0}}),
              HasSubstr("0B0: the stage threw: its activation was moved to the "
                        "host and not back"));
  EXPECT_THAT(errorOf({{0, "F", 0}, {0, "RELEASE_IN", 0}, {0, "B", 0}}),
              HasSubstr("0B0: the stage threw: what its forward kept has been "
                        "released"));
  EXPECT_THAT(errorOf({{0, "F", 0}, {0, "B", 0}, {0, "R", 0}}),
              HasSubstr("0B0: the stage threw: its forward kept the inputs "
                        "alone, and nothing has restored the rest"));
  EXPECT_THAT(errorOf({{0, "F", 0}, {0, "RELEASE_OUT", 0}, {0, "B", 0}}),
              HasSubstr("0RELEASE_OUT0: the stage threw: the backward begins "
                        "with the output of the last stage"));
}

TEST(Actions, OfTheUser) {
  std::vector<Cell> cells{{0, "F", 0}, {0, "OWN", 0}, {0, "B", 0}};
  EXPECT_THAT(errorOf(cells),
              HasSubstr("the program has an action `OWN`, which the stages of "
                        "LibTorch do not know"));
  std::vector<std::string> seen;
  TorchOptions options;
  options.actions["OWN"] = {[&](TorchStage &, const ActionContext &work) {
    seen.push_back(work.mnemonic() + std::to_string(work.microbatch));
  }};
  EXPECT_EQ(errorOf(cells, options), "");
  EXPECT_THAT(seen, ElementsAre("OWN0"));
  // By another name, what the stage does itself.
  options.actions["OWN"] = {&TorchStage::releaseInput};
  EXPECT_THAT(errorOf(cells, options), HasSubstr("has been released"));
}

TEST(Actions, NeedWhatMovesWeights) {
  EXPECT_THAT(errorOf({{0, "F", 0}, {0, "B", 0}, {0, "STEP"}}),
              HasSubstr("0STEP: the stage threw: there is no optimizer: call "
                        "TorchStage::setOptimizer"));
  EXPECT_THAT(errorOf({{0, "F", 0}, {0, "B", 0}, {0, "REDUCE_EMBEDDING"}}),
              HasSubstr("make SharedWeights of all first"));
}

/// The weights after steps in which the loss is scaled by these numbers.
Tensors trained(const std::vector<double> &scales,
                std::vector<TorchStage::Step> &ends) {
  LoadedProgram program =
      programOf({{{0, "F", 0}, {0, "B", 0}, {0, "STEP"}, {0, "VALIDATE"}}}, 1);
  Fixture given;
  std::vector<TorchStage> stages;
  stages.emplace_back(program, 0, given.network());
  Tensors weights;
  for (const Parameter &parameter : stages[0].parameters())
    weights.push_back(parameter.value);
  stages[0].setOptimizer(makeUpdate(std::make_shared<torch::optim::Adam>(
      weights, torch::optim::AdamOptions(0.1))));
  for (double scale : scales) {
    given.scale = scale;
    stages[0].beginStep();
    runThreads(program.program(), std::span(stages));
    ends.push_back(stages[0].lastStep());
  }
  for (at::Tensor &weight : weights)
    weight = weight.detach().clone();
  return weights;
}

TEST(Actions, ValidateTakesStepsBack) {
  using enum TorchStage::Step;
  std::vector<TorchStage::Step> good, bad;
  Tensors expected = trained({1, 2}, good);
  EXPECT_THAT(good, ElementsAre(Applied, Applied));
  // Weights, and what Adam remembers.
  Tensors weights = trained({1, HUGE_VAL, 2}, bad);
  EXPECT_THAT(bad, ElementsAre(Applied, RolledBack, Applied));
  EXPECT_TRUE(same(weights, expected));
}

/// Two ranks with one weight, which is summed ahead of the step.
LoadedProgram tied() {
  return programOf({{{0, "F", 0},
                     {0, "SEND_F", 0, 1},
                     {0, "RECV_B", 0, 1},
                     {0, "B", 0},
                     {0, "REDUCE_EMBEDDING"},
                     {0, "STEP"}},
                    {{1, "RECV_F", 0, 0},
                     {1, "F", 0},
                     {1, "B", 0},
                     {1, "SEND_B", 0, 0},
                     {1, "REDUCE_EMBEDDING"},
                     {1, "STEP"}}},
                   1);
}

TEST(Actions, SumAheadOfTheStep) {
  LoadedProgram program = tied();
  Fixture given;
  std::vector<TorchStage> stages;
  std::vector<Tensors> atStep(2);
  for (uint32_t rank : {0, 1})
    stages.emplace_back(program, rank, given.network());
  for (uint32_t rank : {0, 1}) {
    OptimizerHooks update;
    update.step = [&, rank] { atStep[rank] = gradsOf(stages[rank]); };
    stages[rank].setOptimizer(update);
  }
  SharedWeights shared((std::span(stages)));
  for (int step : {1, 2}) {
    for (TorchStage &stage : stages)
      stage.beginStep();
    runThreads(program.program(), std::span(stages));
    shared.reduceGradients();
    ASSERT_EQ(atStep[0].size(), 4u) << step;
    EXPECT_TRUE(same(atStep[0], atStep[1]));
    EXPECT_TRUE(same(atStep[0], gradsOf(stages[0])));
  }
}

TEST(Actions, SumBesideWhatFollows) {
  auto cells = [](int stage) {
    std::vector<Cell> cells;
    if (stage == 0)
      cells = {
          {0, "F", 0}, {0, "SEND_F", 0, 1}, {0, "RECV_B", 0, 1}, {0, "B", 0}};
    else
      cells = {
          {1, "RECV_F", 0, 0}, {1, "F", 0}, {1, "B", 0}, {1, "SEND_B", 0, 0}};
    for (const char *mnemonic : {"REDUCE_EMBEDDING", "OWN", "STEP"})
      cells.push_back({stage, mnemonic});
    return cells;
  };
  LoadedProgram program = programOf({cells(0), cells(1)}, 1);
  Fixture given;
  std::latch isBehind(1);
  TorchOptions options;
  options.actions["OWN"] = {[&](TorchStage &stage, const ActionContext &work) {
    if (work.rank == 0) // Its own sum has begun, and the other's has not.
      isBehind.count_down();
  }};
  options.actions["REDUCE_EMBEDDING"] = {
      [&](TorchStage &stage, const ActionContext &work) {
        if (work.rank == 1)
          isBehind.wait();
        stage.reduceGradients(work);
      },
      ActionRole::ReducesGradients};
  std::vector<TorchStage> stages;
  for (uint32_t rank : {0, 1}) {
    stages.emplace_back(program, rank, given.network(), options);
    stages.back().setOptimizer({[] {}, [] {}, [] {}});
  }
  SharedWeights shared((std::span(stages)));
  runThreads(program.program(), std::span(stages));
  EXPECT_TRUE(same(gradsOf(stages[0]), gradsOf(stages[1])));
}

/// What setOptimizer says on both ranks, with a norm or without, of a program
/// whose ranks end so.
std::string updateError(const std::vector<Cell> &first,
                        const std::vector<Cell> &second, bool asks = true) {
  std::vector<std::vector<Cell>> ranks{
      {{0, "F", 0}, {0, "SEND_F", 0, 1}, {0, "RECV_B", 0, 1}, {0, "B", 0}},
      {{1, "RECV_F", 0, 0}, {1, "F", 0}, {1, "B", 0}}};
  ranks[0].insert(ranks[0].end(), first.begin(), first.end());
  ranks[1].insert(ranks[1].end(), second.begin(), second.end());
  LoadedProgram program = programOf(ranks, 1);
  Fixture given;
  TorchOptions options;
  options.actions["OWN"] = {[](TorchStage &, const ActionContext &) {}};
  std::set<std::string> said;
  for (uint32_t rank : {0, 1}) {
    TorchStage stage(program, rank, given.network(), options);
    OptimizerHooks update{[] {}, [] {}, [] {}};
    if (asks)
      update.maxNorm = 1;
    try {
      stage.setOptimizer(update);
      said.insert("");
    } catch (const Error &error) {
      said.insert(error.what());
    }
  }
  EXPECT_EQ(said.size(), 1u);
  return *said.begin();
}

TEST(Actions, StepsThatMeetMustNotWaitForWhatIsBehindThem) {
  Cell send{1, "SEND_B", 0, 0}, step{0, "STEP"}, other{1, "STEP"};
  EXPECT_EQ(updateError({step}, {send, other}), "");
  EXPECT_THAT(updateError({step}, {other, send}),
              HasSubstr("rank 1, 1SEND_B0: stands after STEP, which waits for "
                        "all ranks"));
  EXPECT_EQ(updateError({step}, {other, send}, false), "");
  // Both ends behind it.
  EXPECT_EQ(updateError({step, {0, "SEND_F", 0, 1}},
                        {send, other, {1, "RECV_F", 0, 0}}),
            "");
  EXPECT_THAT(updateError({}, {send, other}),
              HasSubstr("rank 1 has STEP 1 times and rank 0 0 times"));
  Cell all{0, "VALIDATE"}, otherAll{1, "VALIDATE"};
  EXPECT_EQ(updateError({step, all}, {send, other, otherAll}), "");
  EXPECT_THAT(updateError({step, all}, {send, otherAll, other}),
              HasSubstr("rank 0, 0VALIDATE: stands after STEP"));
  EXPECT_THAT(updateError({all, step}, {send, other, otherAll}),
              HasSubstr("rank 1, 1VALIDATE: stands after STEP"));
}

TEST(Actions, HearOfRanksThatFail) {
  LoadedProgram program = tied();
  Fixture given;
  std::vector<TorchStage> stages;
  TorchOptions options;
  // Behind its last message; rank 0 waits in its step.
  options.actions["STEP"] = {[](TorchStage &stage, const ActionContext &work) {
                               if (work.rank == 1)
                                 throw std::runtime_error("out of luck");
                               stage.step(work);
                             },
                             ActionRole::Steps};
  options.actions["REDUCE_EMBEDDING"] = {
      [](TorchStage &stage, const ActionContext &work) {
        if (work.rank == 0)
          stage.reduceGradients(work);
      },
      ActionRole::ReducesGradients};
  for (uint32_t rank : {0, 1}) {
    stages.emplace_back(program, rank, given.network(), options);
    stages.back().setOptimizer({[] {}, [] {}, [] {}});
  }
  SharedWeights shared((std::span(stages)));
  auto start = std::chrono::steady_clock::now();
  try {
    runThreads(program.program(), std::span(stages));
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("1STEP: the stage threw: out of luck"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

/// A forward and a backward of one stage as a group.
std::string
errorOfHalves(const std::function<void(const Half &, const Half &)> &overlap,
              const std::string &throws = "") {
  LoadedProgram program = programOf(
      {{{0, "F", 0}, {0, "F", 1, -1, 0}, {0, "B", 0, -1, 0}, {0, "B", 1}}}, 2);
  Fixture given;
  Network network = given.network();
  network.make = [make = network.make, &overlap, &throws](uint8_t pipe,
                                                          uint16_t number) {
    StageModule stage = make(pipe, number);
    stage.overlap = overlap;
    stage.forward = [inner = stage.forward, &throws,
                     calls = 0](const Tensors &in) mutable {
      yieldToOther();
      if (++calls == 2 && throws == "F")
        throw std::runtime_error("out of luck");
      Tensors out = inner(in);
      out[0].register_hook([&throws](const at::Tensor &) {
        yieldToOther();
        if (throws == "B")
          throw std::runtime_error("out of luck");
      });
      return out;
    };
    return stage;
  };
  std::vector<TorchStage> stages;
  stages.emplace_back(program, 0, network);
  try {
    runThreads(program.program(), std::span(stages));
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

TEST(Halves, RunInTurnsAndEndTogether) {
  EXPECT_EQ(errorOfHalves(interleave), "");
  EXPECT_THAT(errorOfHalves(interleave, "F"),
              HasSubstr("0F1: the stage threw: out of luck"));
  EXPECT_THAT(errorOfHalves(interleave, "B"),
              HasSubstr("0B0: the stage threw: out of luck"));
}

TEST(Halves, HaveToRun) {
  EXPECT_THAT(
      errorOfHalves([](const Half &forward, const Half &) { forward(); }),
      HasSubstr("its function `overlap` has not run each half once"));
}

/// One rank with one stage, which has a buffer, and Adam.
struct Trained {
  explicit Trained(double rate = 0.1)
      : program(programOf({{{0, "F", 0}, {0, "B", 0}}}, 1)) {
    Network network = given.network();
    network.make = [](uint8_t, uint16_t) {
      torch::manual_seed(1);
      nn::Sequential layers(nn::Linear(6, 6), nn::BatchNorm1d(6));
      layers->to(torch::kFloat64);
      return stageFromModule(layers.ptr(), "");
    };
    network.input = [](uint32_t) {
      return Tensors{torch::arange(18, torch::kFloat64).view({3, 6}).sin()};
    };
    stages.emplace_back(program, 0, network);
    Tensors weights;
    for (const Parameter &parameter : stages[0].parameters())
      weights.push_back(parameter.value);
    stages[0].setOptimizer(makeUpdate(std::make_shared<torch::optim::Adam>(
        weights, torch::optim::AdamOptions(rate))));
    shared.emplace(std::span(stages));
  }
  void train(int steps) {
    for (int step = 0; step != steps; ++step) {
      stages[0].beginStep();
      runThreads(program.program(), std::span(stages));
      shared->step(stages);
    }
  }
  Tensors all() const {
    Tensors result;
    for (const Parameter &parameter : stages[0].parameters())
      result.push_back(parameter.value.detach().clone());
    for (const Parameter &buffer : stages[0].modules().at({0, 0}).buffers)
      result.push_back(buffer.value.clone());
    return result;
  }

  Fixture given;
  LoadedProgram program;
  std::vector<TorchStage> stages;
  std::optional<SharedWeights> shared;
};

std::string folderFor(const std::string &name) {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("ppcc-checkpoint-" + std::to_string(getpid()) + "-" + name);
  std::filesystem::remove_all(folder);
  return folder;
}

TEST(Checkpoint, GoesOnWhereItWas) {
  std::string folder = folderFor("goes-on");
  Trained one, other;
  one.train(2);
  saveCheckpoint(folder, one.stages[0]);
  Tensors then = one.all();
  EXPECT_EQ(then.size(), 4u + 3u);
  one.train(2);
  EXPECT_FALSE(same(then, one.all()));
  other.train(1);
  loadCheckpoint(folder, other.stages[0]);
  EXPECT_TRUE(same(then, other.all()));
  EXPECT_EQ(other.stages[0].numBatches(), 2u);
  other.train(2);
  EXPECT_TRUE(same(one.all(), other.all()));
  std::filesystem::remove_all(folder);
}

/// Takes a name out of a file of a checkpoint.
void leaveOut(const std::string &name, const std::string &key) {
  std::ifstream file(name, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  c10::Dict<std::string, at::Tensor> kept;
  for (const auto &entry : torch::pickle_load(bytes).toGenericDict())
    if (entry.key().toStringRef() != key)
      kept.insert(entry.key().toStringRef(), entry.value().toTensor());
  bytes = torch::pickle_save(kept);
  std::ofstream(name, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(Checkpoint, SaysWhatIsWrong) {
  std::string folder = folderFor("wrong");
  Trained one;
  auto error = [&] {
    try {
      loadCheckpoint(folder, one.stages[0]);
      return std::string();
    } catch (const Error &error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(error(), HasSubstr("has no files"));
  saveCheckpoint(folder, one.stages[0]);
  EXPECT_EQ(error(), "");
  // Of another training, on more ranks.
  std::filesystem::rename(folder + "/rank-0.pt", folder + "/rank-7.pt");
  one.train(1);
  saveCheckpoint(folder, one.stages[0]);
  EXPECT_THAT(error(), HasSubstr("each checkpoint needs a folder of its own"));
  std::ofstream(folder + "/rank-7.pt") << "no tensors";
  EXPECT_THAT(error(),
              HasSubstr("has a file `rank-7.pt` that is not a dictionary "
                        "of tensors"));
  std::filesystem::remove_all(folder);
  Fixture given;
  LoadedProgram program = programOf({{{0, "F", 0}, {0, "B", 0}}}, 1);
  TorchStage less(program, 0, given.network());
  saveCheckpoint(folder, less);
  EXPECT_THAT(error(), HasSubstr("has no `1.weight`"));
  std::filesystem::remove_all(folder);
  // Weights alone; a scale and nothing beside it.
  OptimizerHooks update = one.stages[0].update();
  update.scale.emplace();
  one.stages[0].setOptimizer(update);
  saveCheckpoint(folder, one.stages[0]);
  EXPECT_EQ(error(), "");
  leaveOut(folder + "/rank-0.pt", "/good_steps");
  EXPECT_THAT(error(), HasSubstr("has no `/good_steps`"));
  leaveOut(folder + "/rank-0.pt", "/scale");
  EXPECT_EQ(error(), "");
  leaveOut(folder + "/rank-0.pt", "/batches");
  EXPECT_THAT(error(), HasSubstr("has no `/batches`"));
  std::filesystem::remove_all(folder);
  std::ofstream(folder) << "a file";
  try {
    saveCheckpoint(folder, less);
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot be written"));
  }
  std::filesystem::remove(folder);
}

} // namespace
