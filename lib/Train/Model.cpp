#include "Model.h"

#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <map>

using namespace ppcc;
using rt::StageModule;
using rt::Tensors;
namespace nn = torch::nn;
namespace F = torch::nn::functional;

namespace {

/// Attention to what came before, then two dense layers; each adds to what it
/// reads.
class LayerImpl : public nn::Module {
public:
  LayerImpl(int64_t width, int64_t heads)
      : heads(heads),
        beforeAttention(register_module(
            "before_attention", nn::LayerNorm(nn::LayerNormOptions({width})))),
        beforeDense(register_module(
            "before_dense", nn::LayerNorm(nn::LayerNormOptions({width})))),
        attention(register_module("attention", nn::Linear(width, 3 * width))),
        joined(register_module("joined", nn::Linear(width, width))),
        wide(register_module("wide", nn::Linear(width, 4 * width))),
        narrow(register_module("narrow", nn::Linear(4 * width, width))),
        share(register_parameter("share", torch::zeros({width}))) {}

  at::Tensor forward(at::Tensor x, const at::Tensor &embedded) {
    x = x + share * embedded;
    x = x + joined(attend(beforeAttention(x)));
    return x + narrow(torch::gelu(wide(beforeDense(x))));
  }

private:
  at::Tensor attend(const at::Tensor &x) {
    int64_t batch = x.size(0), length = x.size(1);
    at::Tensor split = attention(x)
                           .view({batch, length, 3, heads, -1})
                           .permute({2, 0, 3, 1, 4});
    at::Tensor query = split[0], key = split[1], value = split[2];
    at::Tensor scores =
        query.matmul(key.transpose(-1, -2)) / std::sqrt(double(query.size(-1)));
    at::Tensor later =
        torch::ones({length, length}, x.options().dtype(torch::kBool)).triu(1);
    scores = scores.masked_fill(later, -INFINITY);
    return scores.softmax(-1).matmul(value).transpose(1, 2).reshape(
        {batch, length, -1});
  }

  int64_t heads;
  nn::LayerNorm beforeAttention, beforeDense;
  nn::Linear attention, joined, wide, narrow;
  at::Tensor share;
};
TORCH_MODULE(Layer);

} // namespace

/// Makes parts whose first weights depend on the seed and the part alone, each
/// once.
class Transformer::Parts {
public:
  explicit Parts(const Transformer &model)
      : model(model),
        type(model.options.isDouble ? torch::kFloat64 : torch::kFloat32),
        device(model.options.device) {}

  StageModule stage(uint32_t stage, uint32_t numStages) {
    auto boundary = [&](uint32_t s) {
      return uint32_t(uint64_t(model.numLayers) * s / numStages);
    };
    bool isFirst = stage == 0, isLast = stage + 1 == numStages;
    StageModule result;
    std::vector<Layer> own;
    for (uint32_t i = boundary(stage); i != boundary(stage + 1); ++i) {
      own.push_back(layer(i));
      addAll(result, *own.back(), "layer" + std::to_string(i) + ".");
    }
    at::Tensor words = isFirst || isLast ? table() : at::Tensor();
    if (isFirst || isLast)
      result.parameters.push_back({"table", words});
    at::Tensor places = isFirst ? positions() : at::Tensor();
    if (isFirst)
      result.parameters.push_back({"positions", places});
    nn::LayerNorm last = isLast ? norm() : nullptr;
    if (isLast)
      addAll(result, *last, "last_norm.");

    result.forward = [=](const Tensors &in) mutable -> Tensors {
      at::Tensor x = in[0], embedded;
      if (isFirst) {
        x = embedded =
            torch::embedding(words, x) + places.narrow(0, 0, x.size(1));
      } else {
        embedded = in[1];
        for (size_t i = 2; i < in.size(); i += 2) {
          x = x + in[i];
          embedded = embedded + in[i + 1];
        }
      }
      for (Layer &layer : own)
        x = layer(x, embedded);
      if (isLast)
        return {torch::linear(last(x), words)};
      return {x, embedded};
    };
    return result;
  }

private:
  int64_t width() const { return model.options.width; }
  at::Generator generator(uint64_t part) const {
    return at::make_generator<at::CPUGeneratorImpl>(
        model.options.seed * 0x9E3779B97F4A7C15u + part);
  }
  static void addAll(StageModule &stage, nn::Module &module,
                     const std::string &prefix) {
    for (const auto &parameter : module.named_parameters())
      stage.parameters.push_back({prefix + parameter.key(), parameter.value()});
  }

  const Layer &layer(uint32_t number) {
    auto [found, isNew] = layers.try_emplace(number, nullptr);
    if (!isNew)
      return found->second;
    Layer layer(width(), model.options.heads);
    at::Generator random = generator(number + 2);
    torch::NoGradGuard guard;
    for (auto &parameter : layer->named_parameters())
      if (parameter->dim() == 2)
        parameter->normal_(0, deviation, random);
      else if (parameter.key().ends_with("bias"))
        parameter->zero_();
    layer->to(device, type);
    return found->second = layer;
  }
  const at::Tensor &table() {
    return made(words, 0, {model.vocabulary, width()});
  }
  const at::Tensor &positions() {
    return made(places, 1, {model.options.length, width()});
  }
  const nn::LayerNorm &norm() {
    if (!last) {
      last = nn::LayerNorm(nn::LayerNormOptions({width()}));
      last->to(device, type);
    }
    return last;
  }
  const at::Tensor &made(at::Tensor &weight, uint64_t part,
                         at::IntArrayRef shape) {
    if (!weight.defined())
      weight = torch::empty(shape)
                   .normal_(0, deviation, generator(part))
                   .to(device, type)
                   .set_requires_grad(true);
    return weight;
  }

  static constexpr double deviation = 0.02;

  const Transformer &model;
  at::ScalarType type;
  at::Device device;
  std::map<uint32_t, Layer> layers;
  at::Tensor words, places;
  nn::LayerNorm last = nullptr;
};

StageModule Transformer::stage(uint32_t stage, uint32_t numStages) const {
  return Parts(*this).stage(stage, numStages);
}

std::vector<std::vector<StageModule>>
Transformer::whole(const std::vector<uint32_t> &numStages) const {
  Parts parts(*this);
  std::vector<std::vector<StageModule>> pipes;
  for (uint32_t count : numStages) {
    std::vector<StageModule> &stages = pipes.emplace_back();
    for (uint32_t stage = 0; stage != count; ++stage)
      stages.push_back(parts.stage(stage, count));
  }
  return pipes;
}

at::Tensor Transformer::loss(const Tensors &scores,
                             const at::Tensor &tokens) const {
  at::Tensor next = tokens.narrow(1, 1, tokens.size(1) - 1).reshape({-1});
  return F::cross_entropy(scores[0].reshape({-1, vocabulary}), next);
}

at::Tensor Transformer::tokens(std::vector<int64_t> samples) const {
  return torch::tensor(std::move(samples), torch::dtype(torch::kInt64))
      .view({options.batch, -1})
      .to(at::Device(options.device));
}
