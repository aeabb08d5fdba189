// Stages of LibTorch in small programs: recomputation, random numbers, losses.
#include "ppcc/Torch/Stage.h"
#include "ppcc/Runtime/Cooperative.h"
#include "ppcc/Runtime/Json.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <gmock/gmock.h>

#include <sstream>

namespace nn = torch::nn;
using namespace ppcc::rt;
using testing::HasSubstr;
using testing::Not;

namespace {

/// Two stages on one rank, two microbatches; the backward of the last whole or
/// in two parts.
LoadedProgram twoStages(bool splits) {
  std::string rows;
  auto add = [&](int kind, int stage, int microbatch) {
    rows += (rows.empty() ? "" : ",") + std::string("[") +
            std::to_string(kind) + ",0," + std::to_string(stage) + "," +
            std::to_string(microbatch) + ",-1,0,-1,0]";
  };
  for (int m : {0, 1})
    for (int stage : {0, 1})
      add(0, stage, m);
  for (int m : {0, 1})
    for (int stage : {1, 0})
      add(splits ? 1 : 3, stage, m);
  // The weights in another order than the inputs.
  for (int m : {1, 0})
    for (int stage : {0, 1})
      if (splits)
        add(2, stage, m);
  std::istringstream text(
      R"({"format": "ppcc.program", "version": 1, "schedule": "two",
"ranks": 1, "backward": true, "kinds": [
{"mnemonic": "F", "class": "compute"}, {"mnemonic": "I", "class": "compute"},
{"mnemonic": "W", "class": "compute"}, {"mnemonic": "B", "class": "compute"}],
"phases": [""], "files": [], "sites": [[-1,0,0,0]],
"pipes": [{"name": "main", "microbatches": [0,2], "rank_of_stage": [0, 0],
"skip_edges": []}],
"columns": ["kind", "pipe", "stage", "microbatch", "peer", "phase", "group",
"site"], "actions": [[)" +
      rows + "]]}");
  return readJson(text);
}

/// Two layers with dropout between them, a stage each.
Network network(bool drops) {
  Network network;
  network.make = [drops](uint8_t, uint16_t stage) {
    torch::manual_seed(stage);
    nn::Sequential layers(nn::Linear(6, 6), nn::Tanh(), nn::Linear(6, 6));
    if (drops)
      layers->push_back(nn::Dropout(0.5));
    layers->to(torch::kFloat64);
    return stageFromModule(layers.ptr(), std::to_string(stage) + ".");
  };
  network.input = [](uint32_t m) {
    return Tensors{torch::full({3, 6}, 0.1 * (m + 1), torch::kFloat64)};
  };
  network.loss = [](const Tensors &out, uint32_t) {
    return out[0].pow(2).mean();
  };
  return network;
}

struct Ran {
  Tensors grads;
  std::vector<double> losses;
  uint32_t peak;
};

Ran runOnce(bool splits, const Network &network, const TorchOptions &options,
            int steps = 1) {
  LoadedProgram program = twoStages(splits);
  std::vector<TorchStage> stages;
  stages.emplace_back(program, 0, network, options);
  for (int step = 0; step != steps; ++step) {
    stages[0].beginStep();
    runCooperative(program, std::span(stages));
  }
  Ran ran;
  for (const Parameter &parameter : stages[0].parameters())
    ran.grads.push_back(parameter.value.grad());
  for (const Loss &loss : stages[0].takeLosses())
    ran.losses.push_back(loss.value);
  ran.peak = stages[0].takePeakActivations();
  return ran;
}

std::string errorOf(const Network &network, const TorchOptions &options = {}) {
  try {
    runOnce(false, network, options);
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

void expectEqual(const Tensors &a, const Tensors &b, double limit = 0) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i != a.size(); ++i)
    EXPECT_LE((a[i] - b[i]).abs().max().item().toDouble(), limit) << i;
}

TEST(TorchStage, SplitsToTheSameGradients) {
  Ran whole = runOnce(false, network(false), {});
  Ran split = runOnce(true, network(false), {});
  EXPECT_EQ(whole.losses, split.losses);
  EXPECT_EQ(whole.peak, 4u);
  // Microbatches are summed in another order.
  expectEqual(whole.grads, split.grads, 1e-16);
}

TEST(TorchStage, RecomputesWithTheSameRandomNumbers) {
  TorchOptions keeps, recompute;
  keeps.seed = recompute.seed = 3;
  recompute.recompute = true;
  for (bool splits : {false, true}) {
    Ran a = runOnce(splits, network(true), keeps);
    // Not of the generator's state.
    torch::manual_seed(99);
    Ran b = runOnce(splits, network(true), recompute);
    EXPECT_EQ(a.losses, b.losses);
    expectEqual(a.grads, b.grads);
  }
}

TEST(TorchStage, DrawsOtherNumbersForEachStepMicrobatchAndSeed) {
  TorchOptions options;
  options.seed = 3;
  Network same = network(true);
  same.input = [](uint32_t) {
    return Tensors{torch::ones({3, 6}, torch::kFloat64)};
  };
  std::vector<double> losses = runOnce(false, same, options, 2).losses;
  options.seed = 4;
  for (double loss : runOnce(false, same, options, 2).losses)
    losses.push_back(loss);
  EXPECT_EQ(std::set<double>(losses.begin(), losses.end()).size(), 8u);
}

TEST(TorchStage, LeavesTheGeneratorAsItWas) {
  TorchOptions options;
  options.seed = 3;
  Network fixed = network(true);
  LoadedProgram program = twoStages(false);
  std::vector<TorchStage> stages;
  stages.emplace_back(program, 0, fixed, options);
  torch::manual_seed(7);
  at::Tensor expected = torch::rand({3});
  torch::manual_seed(7);
  runCooperative(program, std::span(stages));
  EXPECT_TRUE(torch::rand({3}).equal(expected));
}

TEST(TorchStage, RefusesToRecomputeOtherRandomNumbers) {
  TorchOptions options;
  options.recompute = true;
  EXPECT_THAT(errorOf(network(true), options),
              HasSubstr("0F0: the stage threw: the module draws random "
                        "numbers, and is to run again for the backward: set "
                        "TorchOptions::seed"));
}

TEST(TorchStage, SumsLosses) {
  TorchOptions sums;
  sums.averageLosses = false;
  Ran mean = runOnce(false, network(false), {});
  Ran sum = runOnce(false, network(false), sums);
  EXPECT_EQ(mean.losses, sum.losses);
  for (at::Tensor &grad : mean.grads)
    grad *= 2;
  expectEqual(mean.grads, sum.grads, 1e-16);
}

TEST(TorchStage, WantsOneNumberForALoss) {
  Network wrong = network(false);
  wrong.loss = [](const Tensors &out, uint32_t) { return out[0]; };
  EXPECT_THAT(errorOf(wrong),
              HasSubstr("1F0: the stage threw: the loss must be one number, "
                        "but has 18"));
}

TEST(TorchStage, ErrorsOfLibTorchAreBrief) {
  Network wrong = network(false);
  wrong.input = [](uint32_t) {
    return Tensors{torch::ones({3, 5}, torch::kFloat64)};
  };
  EXPECT_THAT(errorOf(wrong),
              testing::AllOf(HasSubstr("0F0: the stage threw: "),
                             HasSubstr("cannot be multiplied"),
                             Not(HasSubstr("frame #"))));
}

} // namespace
