// The semantic suite that LibTorch's stages and Python's runtime share: each
// case of cases.json must come to what expected.json says, in threads and over
// Gloo. ppcc-run-semantics FOLDER PROGRAMS, where PROGRAMS has the program of
// each run as CASE-RUN.json; ppcc-run-semantics --throw PROGRAM...
#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Threads.h"
#include "ppcc/Torch/C10d.h"
#include "ppcc/Torch/Checkpoint.h"
#include "ppcc/Torch/Optimizer.h"
#include "ppcc/Torch/SharedWeights.h"

#include <torch/all.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>

using namespace ppcc::rt;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

json suite;
constexpr int64_t evaluated = 1000;

/// As in semantics.py.
at::Tensor numbers(int64_t first, at::IntArrayRef shape) {
  int64_t count = c10::multiply_integers(shape);
  return (torch::arange(first, first + count)
                  .mul(7919)
                  .remainder(1009)
                  .to(at::kDouble) /
              1009 -
          0.5)
      .view(shape);
}

bool has(const json &one, const char *name) { return one.value(name, false); }

/// What a rank has done, and is at.
struct RankLog {
  uint64_t step = 0;
  int64_t part = 0, copy = 0;
  bool evaluates = false;
  std::vector<std::string> exchanges;
  std::vector<double> losses, norms;
  std::set<uint64_t> leftOut;
  double evaluation = 0;
};

struct Exchange : torch::autograd::Function<Exchange> {
  static at::Tensor forward(torch::autograd::AutogradContext *context,
                            const at::Tensor &x, int64_t number, int64_t log) {
    context->saved_data["number"] = number;
    context->saved_data["log"] = log;
    run("F", number, log);
    return x.clone();
  }
  static torch::autograd::tensor_list
  backward(torch::autograd::AutogradContext *context,
           const torch::autograd::tensor_list &grads) {
    run("B", context->saved_data["number"].toInt(),
        context->saved_data["log"].toInt());
    return {grads[0].clone(), {}, {}};
  }
  static void run(const std::string &half, int64_t number, int64_t log) {
    auto &all = reinterpret_cast<RankLog *>(log)->exchanges;
    all.push_back(half + std::to_string(number) + "+");
    yieldToOther();
    all.push_back(half + std::to_string(number) + "-");
  }
};

class Run {
public:
  Run(const json &one, const LoadedProgram &program)
      : one(one), program(program) {}

  int64_t count(const char *name, int64_t otherwise) const {
    return one.value(name, otherwise);
  }
  at::ScalarType kind(const char *what = "weights") const {
    std::string name = one.value(what, "float64");
    return name == "bfloat16"  ? at::kBFloat16
           : name == "float32" ? at::kFloat
                               : at::kDouble;
  }
  bool overflows(uint64_t step) const {
    for (uint64_t other : suite["overflows"])
      if (other == step)
        return has(one, "scales") || has(one, "validates");
    return false;
  }

  std::pair<at::Tensor, at::Tensor> batch(const RankLog &log,
                                          uint32_t microbatch) const {
    int64_t rows = suite["rows"], width = suite["width"];
    int64_t number =
        log.evaluates ? evaluated
                      : (int64_t(log.step) * count("batches", 1) + log.part) *
                                count("copies", 1) +
                            log.copy;
    at::Tensor x = 2 * numbers(number * rows * width, {rows, width});
    int64_t each = rows / int64_t(one["M"]), first = microbatch * each;
    return {x.to(kind()).narrow(0, first, each),
            x.roll(1, 1).tanh().to(kind()).narrow(0, first, each)};
  }

  StageModule stage(uint32_t number, uint32_t numStages, RankLog &log) const {
    int64_t numBlocks = suite["blocks"], width = suite["width"],
            each = numBlocks / numStages;
    StageModule result;
    std::vector<std::function<at::Tensor(const at::Tensor &)>> blocks;
    for (int64_t block = number * each; block != (number + 1) * each; ++block) {
      bool isTied = has(one, "tied") && block + 1 == numBlocks;
      int64_t of = isTied ? 0 : block, size = width * (width + 1);
      at::Tensor weight =
          (0.75 * numbers(of * size + 5, {width, width})).to(kind());
      at::Tensor bias =
          (0.2 * numbers(block * size + 5 + width * width, {width})).to(kind());
      for (at::Tensor *tensor : {&weight, &bias})
        tensor->set_requires_grad(true);
      result.parameters.push_back(
          {"blocks." + std::to_string(of) + ".weight", weight});
      result.parameters.push_back(
          {"blocks." + std::to_string(block) + ".bias", bias});
      blocks.push_back([=, this, &log](const at::Tensor &x) {
        at::Tensor own = bias * 1;
        if (block == 0 && !log.evaluates && overflows(log.step) &&
            own.requires_grad())
          own.register_hook([](at::Tensor grad) { return grad * HUGE_VAL; });
        auto exchanged = [&](const at::Tensor &tensor, int64_t which) {
          return has(one, "overlaps")
                     ? Exchange::apply(tensor, 2 * block + which,
                                       reinterpret_cast<int64_t>(&log))
                     : tensor;
        };
        at::ScalarType computes = kind("computes");
        at::Tensor made = at::linear(exchanged(x, 0).to(computes),
                                     weight.to(computes), own.to(computes));
        return x + exchanged(at::tanh(made), 1).to(x.scalar_type());
      });
    }
    result.forward = [blocks](const Tensors &in) {
      at::Tensor x = in[0];
      for (const auto &block : blocks)
        x = block(x);
      return Tensors{x};
    };
    if (has(one, "overlaps"))
      result.overlap = interleave;
    return result;
  }

  Network network(RankLog &log) const {
    Network network;
    network.make = [this, &log](uint8_t pipe, uint16_t number) {
      return stage(number, program.program().pipes[pipe].numStages(), log);
    };
    network.input = [this, &log](uint32_t m) {
      return Tensors{batch(log, m).first};
    };
    network.loss = [this, &log](const Tensors &out, uint32_t m) {
      return at::mse_loss(out[0], batch(log, m).second);
    };
    return network;
  }

  OptimizerHooks update(const TorchStage &stage) const {
    Tensors weights;
    for (const Parameter &parameter : stage.parameters())
      weights.push_back(parameter.value);
    OptimizerHooks update = makeUpdate(std::make_shared<torch::optim::Adam>(
        weights, torch::optim::AdamOptions(suite["rate"].get<double>())));
    if (has(one, "clips"))
      update.maxNorm = suite["max_norm"].get<double>();
    if (has(one, "scales"))
      update.scale = {suite["scale"]["value"], suite["scale"]["interval"]};
    return update;
  }

  void note(RankLog &log, TorchStage &stage) const {
    double sum = 0;
    for (Loss loss : stage.takeLosses())
      sum += loss.value / one["M"].get<double>() / double(count("copies", 1));
    if (log.evaluates)
      log.evaluation += sum * double(count("copies", 1));
    else
      log.losses.back() += sum;
  }
  void end(RankLog &log, const TorchStage &stage) const {
    log.norms.push_back(stage.gradNorm());
    if (stage.lastStep() != TorchStage::Step::Applied)
      log.leftOut.insert(log.step);
  }

  const json &one;
  const LoadedProgram &program;
};

/// Runs a rank's part in a thread of its own each; throws what the first threw.
void onThreads(size_t count, const std::function<void(size_t)> &body) {
  std::exception_ptr failure;
  std::mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i != count; ++i)
      threads.emplace_back([&, i] {
        try {
          body(i);
        } catch (...) {
          std::lock_guard lock(mutex);
          if (!failure)
            failure = std::current_exception();
        }
      });
  }
  if (failure)
    std::rethrow_exception(failure);
}

struct Span {
  uint64_t first, last;
  std::string from, to; ///< Checkpoints; none at the begin.
};

void runInThreads(const Run &run, const LoadedProgram *forward, Span span,
                  std::span<RankLog> logs) {
  const Program &program = run.program;
  std::vector<TorchStage> stages;
  TorchOptions options;
  options.replicas = uint32_t(run.count("copies", 1));
  for (uint32_t rank = 0; rank != logs.size(); ++rank) {
    logs[rank].copy = rank / program.numRanks;
    stages.emplace_back(program, rank % program.numRanks,
                        run.network(logs[rank]), options);
    stages.back().setOptimizer(run.update(stages.back()));
  }
  SharedWeights shared((std::span(stages)));
  auto forAll = [&](auto act) {
    for (size_t i = 0; i != stages.size(); ++i)
      act(logs[i], stages[i]);
  };
  auto pass = [&](const Program &which) {
    onThreads(options.replicas, [&](size_t copy) {
      runThreads(which, std::span(stages).subspan(copy * program.numRanks,
                                                  program.numRanks));
    });
    forAll([&](RankLog &log, TorchStage &stage) { run.note(log, stage); });
  };
  if (span.first != 0)
    for (TorchStage &stage : stages)
      loadCheckpoint(span.from, stage);
  int64_t batches = run.count("batches", 1);
  for (uint64_t step = span.first; step != span.last; ++step) {
    forAll([&](RankLog &log, TorchStage &stage) {
      log.step = step;
      log.losses.push_back(0);
      stage.beginStep(uint32_t(batches));
    });
    for (int64_t part = 0; part != batches; ++part) {
      forAll([&](RankLog &log, TorchStage &stage) {
        log.part = part;
        if (part != 0)
          stage.beginBatch();
      });
      pass(program);
    }
    shared.step(stages);
    forAll([&](RankLog &log, TorchStage &stage) { run.end(log, stage); });
  }
  forAll([&](RankLog &log, TorchStage &stage) {
    saveCheckpoint(span.to, stage);
    log.evaluates = forward != nullptr;
  });
  if (forward)
    pass(forward->program());
}

void runOverGloo(const Run &run, const LoadedProgram *forward, Span span,
                 std::span<RankLog> logs) {
  const Program &program = run.program;
  onThreads(logs.size(), [&](size_t number) {
    auto rank = uint32_t(number);
    RankLog &log = logs[rank];
    uint32_t copy = rank / program.numRanks, ofCopy = rank % program.numRanks;
    log.copy = copy;
    auto meeting = [&](const std::string &name) { return span.to + name; };
    C10d network = C10d::gloo(meeting(".copy" + std::to_string(copy)), ofCopy,
                              program.numRanks);
    TorchOptions options;
    options.replicas = uint32_t(run.count("copies", 1));
    std::vector<TorchStage> stages;
    stages.emplace_back(program, ofCopy, run.network(log), options);
    TorchStage &stage = stages.front();
    std::optional<C10d> all;
    if (options.replicas != 1)
      all.emplace(C10d::gloo(meeting(".all"), rank, uint32_t(logs.size())));
    try {
      stage.setOptimizer(run.update(stage));
      SharedWeights shared(stage, all ? *all : network);
      if (span.first != 0)
        loadCheckpoint(span.from, stage);
      Session session(program, stage, network);
      int64_t batches = run.count("batches", 1);
      for (log.step = span.first; log.step != span.last; ++log.step) {
        log.losses.push_back(0);
        stage.beginStep(uint32_t(batches));
        for (log.part = 0; log.part != batches; ++log.part) {
          if (log.part != 0)
            stage.beginBatch();
          session.step();
          run.note(log, stage);
        }
        shared.step(stages);
        run.end(log, stage);
      }
      saveCheckpoint(span.to, stage);
      if (forward) {
        log.evaluates = true;
        session.link(*forward);
        session.step();
        run.note(log, stage);
      }
    } catch (...) {
      network.fail("another rank has failed");
      throw;
    }
  });
}

LoadedProgram read(const fs::path &path) {
  std::ifstream file(path);
  return readJson(file);
}

double difference(double found, double wanted) {
  double result = std::abs(found - wanted) / std::abs(wanted);
  return std::isnan(result) ? HUGE_VAL : result;
}

/// One case, all of its runs; the largest difference to what is expected.
double check(const json &one, const json &expected, size_t number,
             const fs::path &folder, bool isGloo) {
  std::vector<double> losses, norms;
  double evaluation = 0;
  std::set<uint64_t> leftOut, wanted;
  uint64_t steps = suite["steps"], numRuns = one["runs"].size();
  std::string stem = std::to_string(number) + "-";
  for (uint64_t i = 0; i != numRuns; ++i) {
    LoadedProgram program = read(folder / (stem + std::to_string(i) + ".json"));
    LoadedProgram forward;
    bool evaluates = has(one, "evaluates") && i + 1 == numRuns;
    if (evaluates)
      forward = read(folder / (stem + "forward.json"));
    auto checkpoint = [&](uint64_t run) {
      return (folder /
              (stem + (isGloo ? "gloo" : "threads") + std::to_string(run)))
          .string();
    };
    Span span{i * steps / numRuns, (i + 1) * steps / numRuns, checkpoint(i),
              checkpoint(i + 1)};
    Run run(one, program);
    std::vector<RankLog> logs(program.program().numRanks *
                              size_t(run.count("copies", 1)));
    for (uint64_t step = span.first; step != span.last; ++step)
      if (run.overflows(step))
        wanted.insert(step);
    (isGloo ? runOverGloo : runInThreads)(run, evaluates ? &forward : nullptr,
                                          span, logs);
    losses.resize(span.last);
    for (const RankLog &log : logs) {
      for (uint64_t step = span.first; step != span.last; ++step)
        losses[step] += log.losses[step - span.first];
      if (&log == &logs.front())
        norms.insert(norms.end(), log.norms.begin(), log.norms.end());
      evaluation += log.evaluation;
      leftOut.insert(log.leftOut.begin(), log.leftOut.end());
    }
    if (has(one, "overlaps")) {
      json exchanges = json::array();
      for (const RankLog &log : logs) {
        size_t ofStep = log.exchanges.size() / (span.last - span.first);
        exchanges.push_back(std::vector<std::string>(
            log.exchanges.begin(), log.exchanges.begin() + ptrdiff_t(ofStep)));
      }
      if (exchanges != expected["exchanges"][i])
        throw std::runtime_error("exchanges come in another order: " +
                                 exchanges.dump());
    }
  }
  if (leftOut != wanted)
    throw std::runtime_error("other steps were left out");
  double most = 0;
  for (uint64_t step = 0; step != steps; ++step) {
    most = std::max(most, difference(losses[step], expected["losses"][step]));
    if (has(one, "clips") && !expected["norms"][step].is_null())
      most = std::max(most, difference(norms[step], expected["norms"][step]));
  }
  if (has(one, "evaluates"))
    most = std::max(most, difference(evaluation, expected["evaluated"]));
  return most;
}

/// A module of rank 1 throws when it runs for the second time: all ranks end
/// within a second, and say where they stood and why. Gives what is wrong.
std::string checkFailure(const fs::path &path) {
  using Clock = std::chrono::steady_clock;
  LoadedProgram loaded = read(path);
  const Program &program = loaded;
  uint32_t numStages = 0, end = 0;
  for (const Pipe &pipe : program.pipes) {
    numStages = std::max(numStages, pipe.numStages());
    end = std::max(end, pipe.firstMicrobatch + pipe.numMicrobatches);
  }
  suite = {{"blocks", numStages}, {"width", 4}, {"rows", end}};
  suite["overflows"] = json::array();
  json one = {{"M", end}};
  Run run(one, loaded);
  std::vector<std::string> errors(program.numRanks);
  std::vector<RankLog> logs(program.numRanks);
  Clock::time_point thrown;
  std::string meeting = path.string() + ".meeting";
  onThreads(program.numRanks, [&](size_t number) {
    auto rank = uint32_t(number);
    C10d network = C10d::gloo(meeting, rank, program.numRanks);
    Network modules = run.network(logs[rank]);
    modules.make = [&, make = modules.make, calls = 0](uint8_t pipe,
                                                       uint16_t stage) mutable {
      StageModule module = make(pipe, stage);
      if (rank == 1)
        module.forward = [&, forward = module.forward](const Tensors &in) {
          if (++calls != 2)
            return forward(in);
          thrown = Clock::now();
          throw std::runtime_error("out of luck");
        };
      return module;
    };
    TorchStage stage(program, rank, modules);
    try {
      ppcc::rt::run(program, rank, stage, network);
    } catch (const Error &error) {
      errors[rank] = error.what();
    }
  });
  if (Clock::now() - thrown > std::chrono::seconds(1))
    return "too late";
  const std::string &cause = errors[1];
  if (!cause.starts_with("rank 1, ") || cause.find(".pp:") == cause.npos ||
      !cause.ends_with(": the stage threw: out of luck"))
    return cause;
  for (const std::string &error : errors)
    if (!error.empty() && !error.ends_with(cause))
      return error;
  return "";
}

int checkFailures(std::span<char *> files) {
  int status = 0;
  for (const char *file : files)
    if (std::string wrong = checkFailure(file); !wrong.empty()) {
      std::printf("%s: %s\n", file, wrong.c_str());
      status = 1;
    }
  std::printf("%zu programs end\n", files.size());
  return status;
}

json parse(const fs::path &path) {
  std::ifstream file(path);
  return json::parse(file);
}

} // namespace

int main(int argc, char **argv) {
  at::set_num_threads(1);
  if (argv[1] == std::string("--throw"))
    return checkFailures({argv + 2, argv + argc});
  fs::path folder = argv[1];
  suite = parse(folder / "cases.json");
  json expected = parse(folder / "expected.json");
  int status = 0;
  size_t number = 0;
  for (const json &one : suite["cases"]) {
    std::string name = one["name"];
    for (bool isGloo : {false, true})
      try {
        double most = check(one, expected[name], number, argv[2], isGloo);
        bool isRight = most <= one.value("tolerance", 1e-9);
        status |= !isRight;
        std::printf("%s, %s: %s by at most %.2g\n", name.c_str(),
                    isGloo ? "gloo" : "threads", isRight ? "differs" : "WRONG",
                    most);
      } catch (const std::exception &error) {
        std::printf("%s, %s: %s\n", name.c_str(), isGloo ? "gloo" : "threads",
                    error.what());
        status = 1;
      }
    ++number;
  }
  return status;
}
