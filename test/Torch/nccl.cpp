// LibTorch on Nccl.h: ppcc-run-torch-nccl PROGRAM.JSON...
//
// Runs programs with a thread a rank on the fake of NCCL and CUDA, whose device
// memory all tensors lie in: a message that is none of a tensor's own memory is
// refused there. Compares with a run of one thread, to the bit.
#include "ppcc/Runtime/Nccl.h"
#include "ppcc/Runtime/Cooperative.h"
#include "ppcc/Runtime/Json.h"
#include "ppcc/Torch/Bytes.h"

#include <c10/core/CPUAllocator.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>
#include <fstream>

using namespace ppcc::rt;
namespace nn = torch::nn;

namespace {

struct DeviceMemory : at::Allocator {
  static void give(void *memory) {
    if (memory)
      cudaFree(memory);
  }
  at::DataPtr allocate(size_t bytes) const override {
    void *memory = nullptr;
    if (bytes != 0)
      cudaMalloc(&memory, bytes);
    return {memory, memory, give, at::Device(at::kCPU)};
  }
  at::DeleterFnPtr raw_deleter() const override { return give; }
};

/// Two tensors along each edge, of two types.
Tensors shapes() {
  return {torch::zeros({3, 6}, torch::kFloat64),
          torch::zeros({5, 6}, torch::kFloat32)};
}

class StageImpl : public nn::Module {
public:
  StageImpl()
      : wide(register_module("wide", nn::Linear(6, 6))),
        narrow(register_module("narrow", nn::Linear(6, 6))) {
    wide->to(torch::kFloat64);
  }
  Tensors forward(const Tensors &in) {
    at::Tensor x = in[0], y = in[1];
    for (size_t i = 2; i < in.size(); i += 2)
      x = x + in[i], y = y + in[i + 1];
    return {wide(x).tanh(), narrow(y).tanh()};
  }

private:
  nn::Linear wide, narrow;
};

Network network() {
  Network network;
  network.make = [](uint8_t pipe, uint16_t stage) {
    torch::manual_seed(100 * pipe + stage);
    return stageFromModule(std::make_shared<StageImpl>(),
                           std::to_string(pipe) + "." + std::to_string(stage) +
                               ".");
  };
  network.input = [](uint32_t m) {
    Tensors in = shapes();
    for (at::Tensor &tensor : in)
      tensor.fill_(0.1 * (m + 1));
    return in;
  };
  network.loss = [](const Tensors &out, uint32_t) {
    return out[0].pow(2).mean() + out[1].pow(2).mean();
  };
  return network;
}

std::vector<TorchStage> stagesOf(const Program &program, bool carriesBytes) {
  TorchOptions options;
  if (carriesBytes)
    options.shapes = [](uint8_t, uint16_t, uint16_t) { return shapes(); };
  std::vector<TorchStage> stages;
  for (uint32_t rank = 0; rank != program.numRanks; ++rank)
    stages.emplace_back(program, rank, network(), options);
  return stages;
}

void runNccl(const Program &program, std::vector<TorchStage> &stages) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  std::vector<std::jthread> threads;
  for (uint32_t rank = 0; rank != program.numRanks; ++rank)
    threads.emplace_back([&, rank] {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t comm;
      ncclCommInitRankConfig(&comm, int(program.numRanks), id, int(rank),
                             &config);
      NcclOptions options;
      options.waitsOnHost = true; // What computes is the host.
      {
        Nccl<Tensors> endpoint(comm, options);
        run(program, rank, stages[rank], endpoint);
      }
      ncclCommDestroy(comm);
    });
}

bool areEqual(std::vector<TorchStage> &one, std::vector<TorchStage> &two) {
  bool equal = true;
  for (size_t rank = 0; rank != one.size(); ++rank) {
    for (size_t i = 0; i != one[rank].parameters().size(); ++i)
      equal &= torch::equal(one[rank].parameters()[i].value.grad(),
                            two[rank].parameters()[i].value.grad());
    std::vector<Loss> a = one[rank].takeLosses(), b = two[rank].takeLosses();
    equal &= a.size() == b.size();
    for (size_t i = 0; i != a.size() && equal; ++i)
      equal &= a[i].value == b[i].value;
  }
  return equal;
}

} // namespace

int main(int argc, char **argv) {
  DeviceMemory memory;
  c10::SetCPUAllocator(&memory, 100);
  int equal = 0;
  for (int i = 1; i != argc; ++i) {
    std::ifstream file(argv[i]);
    LoadedProgram program = readJson(file);
    auto alone = stagesOf(program, false), together = stagesOf(program, true);
    runCooperative(program, std::span(alone));
    runNccl(program, together);
    equal += areEqual(alone, together);
  }
  std::printf("%d of %d programs give the same\n", equal, argc - 1);
  return equal != argc - 1;
}
