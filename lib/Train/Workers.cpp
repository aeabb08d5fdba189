#include "Workers.h"

#include "ActivationBytes.h"
#include "Model.h"
#include "RunComparison.h"

#include "ppcc/Runtime/Threads.h"
#include "ppcc/Torch/C10d.h"
#include "ppcc/Torch/Checkpoint.h"
#include "ppcc/Torch/Optimizer.h"
#include "ppcc/Torch/SharedWeights.h"

#include <ATen/Parallel.h>
#include <torch/optim/adam.h>

#include <torch/cuda.h>

#include <dlfcn.h>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

using namespace ppcc;
using namespace ppcc::rt;

namespace {

/// The network, the text, and the step that it is at.
class TrainingTask {
public:
  TrainingTask(const Program &program, const TrainOptions &options)
      : options(options), samples(options),
        model(options, samples.vocabulary(), layersOf(program, options)) {
    // Ranks outnumber cores.
    at::set_num_threads(1);
    if (auto *set = reinterpret_cast<void (*)(int)>(
            dlsym(RTLD_DEFAULT, "openblas_set_num_threads")))
      set(1);
  }

  /// Microbatches are counted over all replicas.
  at::Tensor tokens(uint32_t microbatch) const {
    return model.tokens(samples.at(step, microbatch));
  }
  at::Tensor input(uint32_t microbatch) const {
    at::Tensor all = tokens(microbatch);
    return all.narrow(1, 0, all.size(1) - 1);
  }
  at::Tensor loss(const Tensors &scores, uint32_t microbatch) const {
    return model.loss(scores, tokens(microbatch));
  }
  Network network(const Program &program, uint32_t replica) const {
    uint32_t before = replica * microbatchesEnd(program);
    Network network;
    network.make = [this, &program](uint8_t pipe, uint16_t stage) {
      return model.stage(stage, program.pipes[pipe].numStages());
    };
    network.input = [this, before](uint32_t m) {
      return Tensors{input(before + m)};
    };
    network.loss = [this, before](const Tensors &scores, uint32_t m) {
      return loss(scores, before + m);
    };
    return network;
  }
  /// `trace`: of the last step, where one is wanted.
  Options runOptions(Trace &trace) const {
    Options result;
    result.timeout = timeout();
    if (options.overlaps)
      result.overlap = Overlap::Concurrent;
    if (options.traces) // Each step forgets the one before it.
      result.trace = &trace;
    return result;
  }
  TorchOptions stageOptions() const {
    TorchOptions result;
    result.device = options.device;
    result.recompute = options.recompute;
    result.replicas = options.replicas;
    return result;
  }

  std::chrono::seconds timeout() const {
    return std::chrono::seconds(options.timeout);
  }

  /// Goes on where the stage is.
  void begin(const TorchStage &stage) { first = step = stage.numBatches(); }
  bool hasEnded() const { return step == first + options.steps; }

  const TrainOptions &options;
  uint64_t first = 0, step = 0;
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
OptimizerHooks adamOn(const std::vector<Parameter> &parameters, double rate) {
  Tensors weights;
  for (const Parameter &parameter : parameters)
    if (std::none_of(weights.begin(), weights.end(), [&](const auto &tensor) {
          return tensor.is_same(parameter.value);
        }))
      weights.push_back(parameter.value);
  return makeUpdate(std::make_shared<torch::optim::Adam>(
      weights, torch::optim::AdamOptions(rate)));
}

void sendGradients(const std::vector<Parameter> &parameters,
                   Reporter &reporter) {
  for (const Parameter &parameter : parameters) {
    Gradient gradient{parameter.name, {}};
    if (parameter.value.grad().defined()) {
      at::Tensor values = parameter.value.grad()
                              .to(at::kCPU, at::kDouble)
                              .contiguous()
                              .view(-1);
      const double *data = values.data_ptr<double>();
      gradient.values.assign(data, data + values.numel());
    }
    reporter.send(gradient);
  }
}

/// `before`: the microbatches of the replicas before this one.
void sendLosses(uint64_t step, const std::vector<Loss> &losses, uint32_t before,
                Reporter &reporter) {
  StepLosses all{step, {}, {}};
  for (const Loss &loss : losses) {
    all.microbatches.push_back(before + loss.microbatch);
    all.values.push_back(loss.value);
  }
  reporter.send(all);
}

/// A stage under training. Ranks are counted over all replicas.
class TrainedStage {
public:
  TrainedStage(const TrainingTask &task, uint32_t rank, TorchStage &stage)
      : task(task), rank(rank), stage(stage) {
    stage.setOptimizer(adamOn(stage.parameters(), task.options.learningRate));
    if (!task.options.loadFolder.empty())
      loadCheckpoint(task.options.loadFolder, stage);
  }

  /// Behind a step: tells what happened.
  void endStep(Reporter &reporter) {
    const Program &program = stage.program();
    sendLosses(task.step, stage.takeLosses(),
               rank / program.numRanks * microbatchesEnd(program), reporter);
    if (task.options.sendsGradients && task.step == 0)
      sendGradients(stage.parameters(), reporter);
  }
  void end(uint64_t peakBytes, Reporter &reporter) {
    if (!task.options.saveFolder.empty())
      saveCheckpoint(task.options.saveFolder, stage);
    reporter.send(Peak{rank, stage.takePeakActivations(), peakBytes});
  }

private:
  const TrainingTask &task;
  uint32_t rank;
  TorchStage &stage;
};

void sendTraceEvents(uint32_t rank, const Recorder &recorder,
                     Reporter &reporter) {
  reporter.send(Events{rank, recorder.concurrent(), recorder.all()});
}

/// Runs the step of each replica, all at the same time; `trace` is of the
/// first. Throws the error of the one that failed first by itself.
void runReplicas(const Program &program, std::span<TorchStage> stages,
                 const TrainingTask &task, Trace &trace) {
  runInThreads(task.options.replicas, [&](size_t replica) {
    Options options = task.runOptions(trace);
    if (replica != 0)
      options.trace = nullptr;
    runThreads(program,
               stages.subspan(replica * program.numRanks, program.numRanks),
               options);
  });
}

} // namespace

std::string ppcc::missingDevice(const std::string &device) {
  at::Device wanted(device);
  if (wanted.is_cpu())
    return "";
  pid_t asks = fork();
  if (asks == 0)
    _exit(std::min<int>(torch::cuda::device_count(), 99));
  int status = 0;
  waitpid(asks, &status, 0);
  int numDevices = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (std::max<int>(wanted.index(), 0) < numDevices)
    return "";
  return "--device: there is no `" + device + "`: LibTorch finds " +
         std::to_string(numDevices) + " devices of CUDA";
}

void ppcc::trainThreads(const Program &program, const TrainOptions &options,
                        Reporter &reporter) {
  TrainingTask task(program, options);
  uint32_t numRanks = options.replicas * program.numRanks;
  std::vector<TorchStage> stages;
  std::vector<TrainedStage> trainees;
  for (uint32_t rank = 0; rank != numRanks; ++rank)
    stages.emplace_back(program, rank % program.numRanks,
                        task.network(program, rank / program.numRanks),
                        task.stageOptions());
  for (uint32_t rank = 0; rank != numRanks; ++rank)
    trainees.emplace_back(task, rank, stages[rank]);
  SharedWeights shared((std::span(stages)), task.timeout());
  Trace trace(program.numRanks);
  for (task.begin(stages.front()); !task.hasEnded(); ++task.step) {
    for (TorchStage &stage : stages)
      stage.beginStep();
    runReplicas(program, stages, task, trace);
    shared.step(stages);
    for (TrainedStage &trainee : trainees)
      trainee.endStep(reporter);
  }
  for (TrainedStage &trainee : trainees)
    trainee.end(0, reporter);
  for (uint32_t rank = 0; options.traces && rank != program.numRanks; ++rank)
    sendTraceEvents(rank, trace.rank(rank), reporter);
}

void ppcc::trainRank(const Program &program, uint32_t rank,
                     const RendezvousPaths &files, const TrainOptions &options,
                     Reporter &reporter) {
  TrainingTask task(program, options);
  uint32_t ofReplica = rank % program.numRanks,
           replica = rank / program.numRanks;
  std::optional<ActivationBytes> bytes;
  std::optional<TorchStage> stage;
  std::optional<C10d> network;
  TorchOptions stageOptions = task.stageOptions();
  if (options.countsBytes) {
    bytes.emplace();
    // What a step of the optimizer takes belongs to the weights.
    stageOptions.afterEachAction = [&](const ActionContext &work) {
      if (work.hasMicrobatch())
        bytes->note(stage->parameters(), network->bytesInFlight());
    };
  }
  stage.emplace(program, ofReplica, task.network(program, replica),
                stageOptions);
  TrainedStage trainee(task, rank, *stage);
  network.emplace(C10d::gloo(files.replica, ofReplica, program.numRanks));
  if (options.minLength != 0 || program.shapesVary())
    network->setDynamicShapes();
  std::optional<C10d> all;
  if (options.replicas != 1)
    all.emplace(
        C10d::gloo(files.all, rank, options.replicas * program.numRanks));
  for (std::optional<C10d> *each : {&network, &all})
    if (*each)
      (*each)->setDevice(at::Device(options.device));
  SharedWeights shared(*stage, all ? *all : *network, task.timeout());
  Trace trace(program.numRanks);
  Session session(program, *stage, *network, task.runOptions(trace));
  for (task.begin(*stage); !task.hasEnded(); ++task.step) {
    stage->beginStep();
    if (bytes)
      bytes->begin();
    session.step();
    shared.step({&*stage, 1});
    trainee.endStep(reporter);
  }
  trainee.end(bytes ? bytes->peak() : 0, reporter);
  if (options.traces && replica == 0)
    sendTraceEvents(rank, trace.rank(rank), reporter);
}

namespace {

/// All pipes as replicas of one network, whose weights are there once.
class UnpipelinedModel {
public:
  UnpipelinedModel(const Program &program, const TrainingTask &task)
      : program(program) {
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
    for (uint16_t stage = 0; stage != pipes[p].size(); ++stage) {
      Tensors in;
      for (uint16_t source : neighbours(program.pipes[p], stage, false))
        in.insert(in.end(), outputs[source].begin(), outputs[source].end());
      if (stage == 0)
        in.push_back(input);
      outputs.push_back(pipes[p][stage].forward(in));
    }
    return outputs.back();
  }

private:
  const Program &program;
  std::vector<std::vector<StageModule>> pipes;
  std::vector<Parameter> weights;
};

} // namespace

void ppcc::trainUnpipelined(const Program &program, const TrainOptions &options,
                            Reporter &reporter) {
  TrainingTask task(program, options);
  UnpipelinedModel whole(program, task);
  OptimizerHooks update = adamOn(whole.parameters(), options.learningRate);
  double weight = 1 / (double(countMicrobatches(program)) * options.replicas);
  for (; !task.hasEnded(); ++task.step) {
    for (const Parameter &parameter : whole.parameters())
      parameter.value.mutable_grad() = at::Tensor();
    std::vector<Loss> losses;
    auto train = [&](size_t pipe, uint32_t microbatch) {
      Tensors scores = whole.forward(pipe, task.input(microbatch));
      at::Tensor loss = task.loss(scores, microbatch);
      losses.push_back({microbatch, loss.item().toDouble()});
      loss.backward(torch::full_like(loss, weight));
    };
    for (uint32_t replica = 0; replica != options.replicas; ++replica)
      for (size_t p = 0; p != program.pipes.size; ++p)
        for (uint32_t m = 0; m != program.pipes[p].numMicrobatches; ++m)
          train(p, replica * microbatchesEnd(program) +
                       program.pipes[p].firstMicrobatch + m);
    sendLosses(task.step, losses, 0, reporter);
    if (options.sendsGradients && task.step == 0)
      sendGradients(whole.parameters(), reporter);
    update.step();
  }
}
