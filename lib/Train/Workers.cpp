#include "Workers.h"

#include "Model.h"
#include "Verdict.h"

#include "ppcc/Runtime/Threads.h"
#include "ppcc/Torch/C10d.h"
#include "ppcc/Torch/SharedWeights.h"

#include <ATen/Parallel.h>
#include <torch/optim/adam.h>

#include <dlfcn.h>
#include <set>

using namespace ppcc;
using namespace ppcc::rt;

namespace {

/// The network, the text, and the step that it is at.
class Task {
public:
  Task(const Program &program, const TrainOptions &options)
      : options(options), samples(options),
        model(options, samples.vocabulary(), layersOf(program, options)) {
    // Ranks outnumber cores.
    at::set_num_threads(1);
    if (auto *set = reinterpret_cast<void (*)(int)>(
            dlsym(RTLD_DEFAULT, "openblas_set_num_threads")))
      set(1);
  }

  at::Tensor tokens(uint32_t microbatch) const {
    return model.tokens(samples.at(step, microbatch));
  }
  at::Tensor input(uint32_t microbatch) const {
    return tokens(microbatch).narrow(1, 0, options.length);
  }
  at::Tensor loss(const Tensors &scores, uint32_t microbatch) const {
    return model.loss(scores, tokens(microbatch));
  }
  Network network(const Program &program) const {
    Network network;
    network.make = [this, &program](uint8_t pipe, uint16_t stage) {
      return model.stage(stage, program.pipes[pipe].numStages());
    };
    network.input = [this](uint32_t m) { return Tensors{input(m)}; };
    network.loss = [this](const Tensors &scores, uint32_t m) {
      return loss(scores, m);
    };
    return network;
  }
  TorchOptions stageOptions() const {
    TorchOptions result;
    result.recomputes = options.recomputes;
    return result;
  }

  const TrainOptions &options;
  uint64_t step = 0;
  Samples samples;
  Transformer model;

private:
  static uint32_t layersOf(const Program &program,
                           const TrainOptions &options) {
    uint32_t stages = 0;
    for (const Pipe &pipe : program.pipes)
      stages = std::max(stages, pipe.numStages());
    return options.layers != 0 ? options.layers : stages;
  }
};

/// Adam on some weights, each once.
class Optimizer {
public:
  Optimizer(const std::vector<Parameter> &parameters, double rate)
      : adam(distinct(parameters), torch::optim::AdamOptions(rate)) {}
  void step() { adam.step(); }

private:
  static Tensors distinct(const std::vector<Parameter> &parameters) {
    Tensors result;
    for (const Parameter &parameter : parameters)
      if (std::none_of(result.begin(), result.end(), [&](const auto &tensor) {
            return tensor.is_same(parameter.value);
          }))
        result.push_back(parameter.value);
    return result;
  }

  torch::optim::Adam adam;
};

void tellGradients(const std::vector<Parameter> &parameters,
                   Reporter &reporter) {
  for (const Parameter &parameter : parameters) {
    Gradient gradient{parameter.name, {}};
    if (parameter.value.grad().defined()) {
      at::Tensor values =
          parameter.value.grad().to(at::kDouble).contiguous().view(-1);
      const double *data = values.data_ptr<double>();
      gradient.values.assign(data, data + values.numel());
    }
    reporter.tell(gradient);
  }
}

void tellLosses(uint64_t step, const std::vector<Loss> &losses,
                Reporter &reporter) {
  StepLosses all{step, {}, {}};
  for (const Loss &loss : losses) {
    all.microbatches.push_back(loss.microbatch);
    all.values.push_back(loss.value);
  }
  reporter.tell(all);
}

/// Behind the gradients of a step: shares them, tells what happened, and moves
/// the weights.
void endStep(const Task &task, TorchStage &stage, Optimizer &optimizer,
             Reporter &reporter) {
  tellLosses(task.step, stage.takeLosses(), reporter);
  if (task.options.sendsGradients && task.step == 0)
    tellGradients(stage.parameters(), reporter);
  optimizer.step();
}

} // namespace

void ppcc::trainThreads(const Program &program, const TrainOptions &options,
                        Reporter &reporter) {
  Task task(program, options);
  std::vector<TorchStage> stages;
  std::vector<Optimizer> optimizers;
  for (uint32_t rank = 0; rank != program.numRanks; ++rank) {
    stages.emplace_back(program, rank, task.network(program),
                        task.stageOptions());
    optimizers.emplace_back(stages.back().parameters(), options.learningRate);
  }
  SharedWeights shared((std::span(stages)));
  for (; task.step != options.steps; ++task.step) {
    for (TorchStage &stage : stages)
      stage.beginStep();
    runThreads(program, std::span(stages));
    shared.sumGradients();
    for (uint32_t rank = 0; rank != program.numRanks; ++rank)
      endStep(task, stages[rank], optimizers[rank], reporter);
  }
  for (uint32_t rank = 0; rank != program.numRanks; ++rank)
    reporter.tell(Peak{rank, stages[rank].takePeak()});
}

void ppcc::trainRank(const Program &program, uint32_t rank,
                     const std::string &file, const TrainOptions &options,
                     Reporter &reporter) {
  Task task(program, options);
  TorchStage stage(program, rank, task.network(program), task.stageOptions());
  Optimizer optimizer(stage.parameters(), options.learningRate);
  C10d network = C10d::gloo(file, rank, program.numRanks);
  SharedWeights shared(stage, network);
  for (; task.step != options.steps; ++task.step) {
    stage.beginStep();
    run(program, rank, stage, network);
    shared.sumGradients();
    endStep(task, stage, optimizer, reporter);
  }
  reporter.tell(Peak{rank, stage.takePeak()});
}

namespace {

/// All pipes as replicas of one network, whose weights are there once.
class Whole {
public:
  Whole(const Program &program, const Task &task) : program(program) {
    std::vector<uint32_t> numStages;
    for (const Pipe &pipe : program.pipes)
      numStages.push_back(pipe.numStages());
    pipes = task.model.whole(numStages);
    std::set<std::string> seen;
    for (const std::vector<StageModule> &stages : pipes)
      for (const StageModule &stage : stages)
        for (const Parameter &parameter : stage.parameters)
          if (seen.insert(parameter.name).second)
            weights.push_back(parameter);
  }

  const std::vector<Parameter> &parameters() const { return weights; }

  /// What the last stage gives.
  Tensors forward(size_t p, const at::Tensor &input) const {
    std::vector<Tensors> outputs;
    for (uint32_t stage = 0; stage != pipes[p].size(); ++stage) {
      Tensors in;
      for (uint32_t source : sourcesOf(program.pipes[p], stage))
        in.insert(in.end(), outputs[source].begin(), outputs[source].end());
      if (stage == 0)
        in.push_back(input);
      outputs.push_back(pipes[p][stage].forward(in));
    }
    return outputs.back();
  }

private:
  static std::vector<uint32_t> sourcesOf(const Pipe &pipe, uint32_t stage) {
    std::vector<uint32_t> sources;
    for (SkipEdge edge : pipe.skipEdges)
      if (edge.to == stage)
        sources.push_back(edge.from);
    if (stage != 0)
      sources.push_back(stage - 1);
    return sources;
  }

  const Program &program;
  std::vector<std::vector<StageModule>> pipes;
  std::vector<Parameter> weights;
};

} // namespace

void ppcc::trainUnpipelined(const Program &program, const TrainOptions &options,
                            Reporter &reporter) {
  Task task(program, options);
  Whole whole(program, task);
  Optimizer optimizer(whole.parameters(), options.learningRate);
  double weight = 1 / double(countMicrobatches(program));
  for (; task.step != options.steps; ++task.step) {
    for (const Parameter &parameter : whole.parameters())
      parameter.value.mutable_grad() = at::Tensor();
    std::vector<Loss> losses;
    for (size_t p = 0; p != program.pipes.size; ++p) {
      const Pipe &pipe = program.pipes[p];
      uint32_t end = pipe.firstMicrobatch + pipe.numMicrobatches;
      for (uint32_t m = pipe.firstMicrobatch; m != end; ++m) {
        at::Tensor loss = task.loss(whole.forward(p, task.input(m)), m);
        losses.push_back({m, loss.item().toDouble()});
        loss.backward(torch::full_like(loss, weight));
      }
    }
    tellLosses(task.step, losses, reporter);
    if (options.sendsGradients && task.step == 0)
      tellGradients(whole.parameters(), reporter);
    optimizer.step();
  }
}
