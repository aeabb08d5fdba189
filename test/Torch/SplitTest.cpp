// I and W together are B, to the bit, for modules of all shapes.
#include "Split.h"

#include "ppcc/Runtime/Cooperative.h"
#include "ppcc/Torch/Stage.h"

#include <torch/torch.h>

#include <gmock/gmock.h>

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using namespace ppcc::rt;
using testing::HasSubstr;

namespace {

/// x + MLP(LN(x)), and attention with a mask before it.
struct BlockImpl : nn::Module {
  nn::LayerNorm first, second;
  nn::Linear qkv, out, wide, narrow;

  explicit BlockImpl(int64_t width)
      : first(nn::LayerNormOptions({width})),
        second(nn::LayerNormOptions({width})), qkv(width, 3 * width),
        out(width, width), wide(width, 4 * width), narrow(4 * width, width) {
    register_module("first", first);
    register_module("second", second);
    register_module("qkv", qkv);
    register_module("out", out);
    register_module("wide", wide);
    register_module("narrow", narrow);
  }
  at::Tensor forward(at::Tensor x) {
    std::vector<at::Tensor> parts = qkv(first(x)).chunk(3, -1);
    at::Tensor scores = parts[0].matmul(parts[1].transpose(-1, -2));
    at::Tensor mask = torch::ones_like(scores, torch::kBool).triu(1);
    scores = scores.masked_fill(mask, -1e9);
    x = x + out(scores.softmax(-1).matmul(parts[2]));
    return x + narrow(torch::gelu(wide(second(x))));
  }
};
TORCH_MODULE(Block);

/// One weight three times along the path, once behind a function of its own,
/// and a weight beside the path.
struct TiedImpl : nn::Module {
  at::Tensor weight, scale, beside;

  explicit TiedImpl(int64_t width)
      : weight(register_parameter("weight", torch::randn({width, width}) / 4)),
        scale(register_parameter("scale", torch::randn({width}))),
        beside(register_parameter("beside", torch::randn({width}))) {}
  std::tuple<at::Tensor, at::Tensor> forward(at::Tensor x) {
    at::Tensor normal = weight / weight.norm();
    x = torch::tanh(x.matmul(weight));
    x = torch::tanh(x.matmul(normal) * scale) + x;
    x = x.matmul(weight.t()) + normal.sum();
    return {x, (beside * scale).exp()};
  }
};
TORCH_MODULE(Tied);

/// Convolutions, a module used twice, several inputs of which one is not used,
/// one only by weights' side, one is no number.
struct MixedImpl : nn::Module {
  nn::Conv1d conv;
  nn::Embedding table;

  MixedImpl() : conv(nn::Conv1dOptions(3, 3, 3).padding(1)), table(5, 8) {
    register_module("conv", conv);
    register_module("table", table);
  }
  Tensors forward(at::Tensor x, at::Tensor y, at::Tensor unused,
                  at::Tensor words) {
    at::Tensor h = torch::relu(conv(x)) * y;
    h = conv(h) + table(words).unsqueeze(1);
    return {h, words, y.clone().mul_(conv->bias.sum())};
  }
};
TORCH_MODULE(Mixed);

template <class Holder> StageModule doubles(Holder module) {
  module->to(torch::kFloat64);
  return stageFromModule(module.ptr(), "");
}

Tensors leaves(const Tensors &values) {
  Tensors result;
  for (const at::Tensor &value : values)
    result.push_back(value.detach().requires_grad_(value.is_floating_point()));
  return result;
}

Tensors gradsFor(const Tensors &outputs) {
  torch::manual_seed(5);
  Tensors grads;
  for (const at::Tensor &output : outputs)
    grads.push_back(output.is_floating_point() ? torch::randn_like(output)
                                               : at::Tensor());
  return grads;
}

Tensors takeGrads(const StageModule &stage) {
  Tensors grads;
  for (const Parameter &parameter : stage.parameters)
    grads.push_back(
        std::exchange(parameter.value.mutable_grad(), at::Tensor()));
  return grads;
}

bool same(const at::Tensor &a, const at::Tensor &b) {
  return a.defined() == b.defined() && (!a.defined() || a.equal(b));
}
bool same(const Tensors &a, const Tensors &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](auto &x, auto &y) { return same(x, y); });
}

/// Splits the backward for two microbatches, their W's in the other order, and
/// compares with the whole one.
void expectSame(const StageModule &stage, const Tensors &first,
                const Tensors &second) {
  const Tensors *values[] = {&first, &second};
  Tensors wholeInputs[2], splitInputs[2];
  for (int m : {1, 0}) {
    Tensors in = leaves(*values[m]), out = stage.forward(in);
    Tensors grads = gradsFor(out);
    wholeInputs[m] = Backward{Roots(out), grads, in}.runFull();
  }
  Tensors whole = takeGrads(stage);

  DeferredWeights weights[2];
  for (int m : {0, 1}) {
    Tensors in = leaves(*values[m]), out = stage.forward(in);
    Tensors grads = gradsFor(out);
    splitInputs[m] = weights[m].runInputBackward({Roots(out), grads, in});
  }
  EXPECT_TRUE(same(takeGrads(stage), Tensors(stage.parameters.size())))
      << "I has touched the weights";
  weights[1].run();
  weights[0].run();
  Tensors split = takeGrads(stage);

  for (int m : {0, 1})
    EXPECT_TRUE(same(wholeInputs[m], splitInputs[m])) << "microbatch " << m;
  ASSERT_EQ(whole.size(), split.size());
  for (size_t i = 0; i != whole.size(); ++i)
    EXPECT_TRUE(same(whole[i], split[i])) << stage.parameters[i].name;
}

at::Tensor numbers(at::IntArrayRef shape) {
  return torch::randn(shape, torch::kFloat64);
}

TEST(Split, Linear) {
  torch::manual_seed(1);
  expectSame(doubles(nn::Linear(8, 6)), {numbers({4, 8})}, {numbers({4, 8})});
}

TEST(Split, ChainsOfLayers) {
  torch::manual_seed(1);
  nn::Sequential chain;
  for (int i = 0; i != 5; ++i) {
    chain->push_back(nn::Linear(8, 8));
    chain->push_back(nn::Tanh());
  }
  StageModule stage = doubles(chain);
  expectSame(stage, {numbers({4, 8})}, {numbers({4, 8})});
}

TEST(Split, ResidualsNormsAndAttention) {
  torch::manual_seed(2);
  nn::Sequential blocks(Block(8), Block(8));
  expectSame(doubles(blocks), {numbers({2, 5, 8})}, {numbers({2, 5, 8})});
}

TEST(Split, TiedWeights) {
  torch::manual_seed(3);
  expectSame(doubles(Tied(8)), {numbers({4, 8})}, {numbers({4, 8})});
}

TEST(Split, SeveralInputsAndOutputs) {
  torch::manual_seed(4);
  auto inputs = [] {
    return Tensors{numbers({2, 3, 8}), numbers({2, 3, 8}), numbers({2}),
                   torch::randint(5, {2})};
  };
  expectSame(doubles(Mixed()), inputs(), inputs());
}

TEST(Split, StageWithoutWeights) {
  StageModule stage;
  stage.forward = [](const Tensors &in) { return Tensors{in[0].sin(), in[0]}; };
  expectSame(stage, {numbers({3})}, {numbers({3})});
}

TEST(Split, StageWhoseInputNeedsNoGradient) {
  torch::manual_seed(6);
  nn::Sequential stage(nn::Embedding(7, 4), nn::Linear(4, 4));
  expectSame(doubles(stage), {torch::randint(7, {5})},
             {torch::randint(7, {5})});
}

TEST(Split, FrozenWeights) {
  torch::manual_seed(7);
  nn::Sequential chain(nn::Linear(8, 8), nn::Tanh(), nn::Linear(8, 8));
  chain->to(torch::kFloat64);
  chain[0]->as<nn::Linear>()->weight.set_requires_grad(false);
  expectSame(stageFromModule(chain.ptr(), ""), {numbers({4, 8})},
             {numbers({4, 8})});
}

TEST(Split, FreesWhatWDoesNotNeed) {
  // Of 20 layers of tanh between two linear ones nothing is needed behind I.
  StageModule stage = doubles(nn::Linear(8, 8));
  at::Tensor between;
  Tensors in = leaves({numbers({4, 8})}), out = stage.forward(in);
  for (int i = 0; i != 20; ++i) {
    out[0] = torch::tanh(out[0]);
    if (i == 10)
      between = out[0];
  }
  std::weak_ptr<torch::autograd::Node> node = between.grad_fn();
  between = at::Tensor();
  Tensors grads = gradsFor(out);
  DeferredWeights weights;
  weights.runInputBackward({Roots(out), grads, in});
  EXPECT_FALSE(node.expired());
  out.clear();
  EXPECT_TRUE(node.expired());
  weights.run();
  EXPECT_TRUE(stage.parameters[0].value.grad().defined());
}

TEST(Split, WrongNumberOfGradients) {
  StageModule stage = doubles(nn::Linear(8, 8));
  Tensors in = leaves({numbers({4, 8})}), out = stage.forward(in), none;
  EXPECT_THROW((Backward{Roots(out), none, in}.runFull()), std::runtime_error);
}

TEST(StageOf, SaysHowManyTensorsDoNotFit) {
  StageModule stage = stageFromModule(nn::Linear(8, 8).ptr(), "a.");
  EXPECT_EQ(stage.parameters[0].name, "a.weight");
  try {
    stage.forward({numbers({1}), numbers({1})});
    FAIL();
  } catch (const std::exception &error) {
    EXPECT_THAT(error.what(), HasSubstr("does not take 2 tensors"));
  }
}

} // namespace
