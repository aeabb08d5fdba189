// Times the engine with tiny stages of LibTorch, Linear 16x16 on 4 rows in
// single precision: ppcc-bench-torch PROGRAM.JSON.
#include "Engine.h"

#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Threads.h"
#include "ppcc/Torch/C10d.h"
#include "ppcc/Torch/Stage.h"

#include <ATen/Parallel.h>
#include <torch/nn/modules/linear.h>

#include <fstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace ppcc::rt;

constexpr int warmup = 3, steps = 30;

Network linear() {
  Network network;
  network.make = [](uint8_t, uint16_t) {
    torch::nn::Linear layer(16, 16);
    return stageFromModule(layer.ptr(), "");
  };
  network.input = [](uint32_t) { return Tensors{torch::ones({4, 16})}; };
  network.loss = [](const Tensors &output, uint32_t) {
    return output[0].sum();
  };
  return network;
}

void time(const char *what, const Program &program,
          const std::function<void()> &step) {
  for (int i = 0; i != warmup; ++i)
    step();
  bench::Stopwatch watch;
  for (int i = 0; i != steps; ++i)
    step();
  watch.report(what, steps * bench::actionsOf(program));
}

void timeThreads(const Program &program) {
  std::vector<TorchStage> stages;
  for (uint32_t rank = 0; rank != program.numRanks; ++rank)
    stages.emplace_back(program, rank, linear());
  time("LibTorch, threads", program,
       [&] { runThreads(program, std::span(stages)); });
}

void timeRank(const Program &program, uint32_t rank, const std::string &file) {
  C10d network = C10d::gloo(file, rank, program.numRanks);
  TorchStage stage(program, rank, linear());
  Session session(program, stage, network);
  auto step = [&] { session.step(); };
  if (rank == 0)
    return time("LibTorch, Gloo", program, step);
  for (int i = 0; i != warmup + steps; ++i)
    step();
}

/// Runs `work` in a process of its own.
pid_t inChildProcess(const std::function<void()> &work) {
  pid_t pid = fork();
  if (pid != 0)
    return pid;
  at::set_num_threads(1);
  work();
  std::fflush(stdout);
  _exit(0);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  std::ifstream file(argv[1], std::ios::binary);
  LoadedProgram loaded = readJson(file);
  const Program &program = loaded.program();
  // Before this process has threads of LibTorch's.
  std::string rendezvousFile =
      "/proc/self/fd/" + std::to_string(memfd_create("", 0));
  std::vector<pid_t> ranks{inChildProcess([&] { timeThreads(program); })};
  waitpid(ranks.front(), nullptr, 0);
  ranks.clear();
  for (uint32_t rank = 0; rank != program.numRanks; ++rank)
    ranks.push_back(
        inChildProcess([&] { timeRank(program, rank, rendezvousFile); }));
  int failed = 0;
  for (pid_t pid : ranks) {
    int status = 0;
    waitpid(pid, &status, 0);
    failed |= status;
  }
  return failed != 0;
}
