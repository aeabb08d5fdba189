// Trains programs for one step, a thread a rank, and compares the gradients
// with those of the same network without a pipeline:
//
//     ppcc zb1p -D P=4 -D M=8 -o zb1p.json && check zb1p.json
//
// --overlap runs the members of overlap groups at the same time.
#include "Stage.h"

#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Threads.h"

#include <torch/torch.h>

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fstream>

using namespace ppcc::rt;
using example::Tensors;

namespace {

constexpr int64_t rows = 3, width = 6;

/// The weights of a stage, of which one is used twice.
struct Weights {
  at::Tensor in, out, bias;
};
/// Of all stages of all pipes, which begin equal in each.
struct Model {
  std::map<std::pair<uint8_t, uint16_t>, Weights> stages;

  explicit Model(const Program &program) {
    torch::manual_seed(0);
    auto make = [](at::IntArrayRef shape) {
      return (torch::randn(shape, torch::kDouble) / 4).requires_grad_();
    };
    for (uint8_t pipe = 0; pipe != program.pipes.size; ++pipe)
      for (uint16_t s = 0; s != program.pipes[pipe].numStages(); ++s)
        stages[{pipe, s}] = {make({width, width}), make({width, width}),
                             make({width})};
  }

  /// One product lies on the path to the input, one beside it.
  at::Tensor forward(uint8_t pipe, uint16_t stage,
                     const Tensors &inputs) const {
    const auto &[in, out, bias] = stages.at({pipe, stage});
    at::Tensor x = inputs.front();
    for (size_t i = 1; i != inputs.size(); ++i)
      x = x + inputs[i];
    return x + (x.matmul(in) + bias).tanh().matmul(out) +
           x.matmul(in.t()).sigmoid() + bias.unsqueeze(0).matmul(out).tanh();
  }
  static at::Tensor input(uint8_t pipe, uint32_t microbatch) {
    return (torch::arange(rows * width, torch::kDouble) * (1 + pipe) / 7 +
            double(microbatch))
        .sin()
        .view({rows, width});
  }
  static at::Tensor loss(uint8_t, uint32_t microbatch,
                         const at::Tensor &output) {
    return (output - 0.1 * microbatch).square().mean();
  }
};

double trainUnpipelined(const Program &program, const Model &model) {
  double sum = 0;
  for (uint8_t p = 0; p != program.pipes.size; ++p) {
    const Pipe &pipe = program.pipes[p];
    for (uint32_t i = 0; i != pipe.numMicrobatches; ++i) {
      uint32_t microbatch = pipe.firstMicrobatch + i;
      Tensors outputs;
      at::Tensor loss = torch::zeros({}, torch::kDouble);
      for (uint16_t stage = 0; stage != pipe.numStages(); ++stage) {
        Tensors inputs;
        for (uint16_t from : neighbours(pipe, stage, /*readers=*/false))
          inputs.push_back(outputs[from]);
        if (inputs.empty())
          inputs.push_back(Model::input(p, microbatch));
        outputs.push_back(model.forward(p, stage, inputs));
        if (!pipe.hasReaders(stage))
          loss = loss + Model::loss(p, microbatch, outputs.back());
      }
      loss.backward();
      sum += loss.item<double>();
    }
  }
  return sum;
}

double trainPipelined(const Program &program, const Model &model,
                      const Options &options) {
  example::Network network;
  network.module = [&](uint8_t pipe, uint16_t stage, const Tensors &inputs) {
    return model.forward(pipe, stage, inputs);
  };
  network.input = Model::input;
  network.loss = Model::loss;
  std::vector<example::TorchStage> stages;
  for (uint32_t rank = 0; rank != program.numRanks; ++rank)
    stages.emplace_back(program, network);
  runThreads(program, std::span(stages), options);
  double sum = 0;
  for (const example::TorchStage &stage : stages)
    for (const auto &[microbatch, loss] : stage.losses)
      sum += loss.item<double>();
  return sum;
}

/// Whether the gradients are the same up to rounding: a pipeline sums those of
/// the microbatches in another order.
bool check(const char *path, const Options &options) {
  std::ifstream file(path);
  LoadedProgram loaded = readJson(file);
  const Program &program = loaded;
  if (!program.hasBackward)
    throw Error("it has no backward: there is nothing to compare");
  Model plain(program), pipelined(program);
  double most = std::abs(trainUnpipelined(program, plain) -
                         trainPipelined(program, pipelined, options));
  std::string where = most < 1e-9 ? "" : "the losses";
  for (const auto &[key, weights] : plain.stages) {
    const Weights &other = pipelined.stages.at(key);
    for (auto [name, weight] :
         {std::pair("in", &Weights::in), std::pair("out", &Weights::out),
          std::pair("bias", &Weights::bias)}) {
      at::Tensor grad = (weights.*weight).grad(),
                 found = (other.*weight).grad();
      double difference =
          found.defined()
              ? ((grad - found).abs().max() / grad.abs().max()).item<double>()
              : INFINITY;
      if (!(difference < 1e-12) && where.empty())
        where = concat("`", name, "` of stage ", key.second, " of pipe `",
                       program.pipes[key.first].name, "`");
      most = std::max(most, difference);
    }
  }
  std::printf("%s: gradients differ by at most %.2g%s%s\n", path, most,
              where.empty() ? "" : ", first in ", where.c_str());
  return where.empty();
}

/// Debian's OpenBLAS for one thread shares its buffers without a lock: products
/// that threads compute at the same time are wrong.
bool isBlasThreadSafe() {
  auto *parallel =
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_parallel"));
  auto *config = reinterpret_cast<const char *(*)()>(
      dlsym(RTLD_DEFAULT, "openblas_get_config"));
  return !parallel || !config || parallel() != 0 ||
         std::strstr(config(), "USE_LOCKING");
}

} // namespace

int main(int argc, char **argv) {
  if (!isBlasThreadSafe()) {
    std::printf("OpenBLAS is built for one thread, and gives wrong results "
                "where several compute: install libopenblas0-pthread\n");
    return 1;
  }
  Options options;
  options.timeout = std::chrono::minutes(1);
  int programs = 0, failed = 0;
  for (int i = 1; i != argc; ++i) {
    if (!std::strcmp(argv[i], "--overlap")) {
      options.overlap = Overlap::Concurrent;
      continue;
    }
    ++programs;
    try {
      failed += !check(argv[i], options);
    } catch (const std::exception &error) {
      std::printf("%s: %s\n", argv[i], error.what());
      ++failed;
    }
  }
  std::printf("%d programs, %d failed\n", programs, failed);
  return failed != 0;
}
