// The stages of examples/libtorch on Nccl.h, with the model of CUDA and NCCL:
// ppcc-run-libtorch-nccl [current-stream] PROGRAM.JSON...
//
// All tensors of a rank lie in the model's memory, which comes and goes in the
// order of the stream that is current, as that of LibTorch's allocator does.
// The network reads and writes its tensors by kernels on that stream: the model
// reports what is not ordered behind the messages. Gradients are compared with
// those of a run of one thread, to the bit.
// current-stream: stages compute on a stream that the transport does not know.
#include "libtorch/Stage.h"

#include "ppcc/Runtime/Cooperative.h"
#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Nccl.h"

#include "Inputs/cuda-model/Model.h"

#include <torch/torch.h>

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/FakeGuardImpl.h>

#include <cstdio>
#include <cstring>
#include <fstream>

using namespace ppcc::rt;
using example::Tensors;
using Guard = c10::impl::FakeGuardImpl<at::kPrivateUse1>;

/// The device of the streams; tensors are the host's for LibTorch.
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);
template <> thread_local c10::DeviceIndex Guard::current_device_ = 0;
template <>
thread_local std::array<c10::StreamId, c10::impl::kFakeGuardImplMaxDevices>
    Guard::current_streams_ = {};

namespace {

const at::Device device(at::kPrivateUse1, 0);

c10::Stream wrap(cudaStream_t stream) {
  return c10::Stream(c10::Stream::UNSAFE, device,
                     reinterpret_cast<c10::StreamId>(stream));
}
/// Null in threads that are no ranks.
cudaStream_t currentStream() {
  return reinterpret_cast<cudaStream_t>(Guard().getStream(device).id());
}

struct ModelAllocator : at::Allocator {
  struct Block {
    void *memory = nullptr;
    cudaStream_t stream;
    size_t bytes;
  };
  static void free(void *opaque) {
    std::unique_ptr<Block> block(static_cast<Block *>(opaque));
    if (block->stream)
      cudaFreeAsync(block->memory, block->stream);
    else
      std::free(block->memory);
  }
  at::DataPtr allocate(size_t bytes) const override {
    if (bytes == 0)
      return {nullptr, at::kCPU};
    auto *block = new Block{nullptr, currentStream(), bytes};
    if (block->stream)
      cudaMallocAsync(&block->memory, bytes, block->stream);
    else
      block->memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    return {block->memory, block, free, at::kCPU};
  }
};

using View = std::span<std::byte>;

View viewOf(const at::Tensor &tensor) { return Bytes<at::Tensor>::of(tensor); }

/// Launches a kernel on the current stream where there is one, and waits for
/// it: the rest is computed on the host.
void launch(View read, View written, std::function<void()> body) {
  cudaStream_t stream = currentStream();
  if (!stream)
    return body();
  model::kernel(stream, [=] {
    if (!read.empty())
      model::recordAccess(read.data(), read.size(), false);
    if (!written.empty())
      model::recordAccess(written.data(), written.size(), true);
    body();
    return true;
  });
  checkCuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

/// A copy by a kernel, which reads what the model knows: what comes from
/// another stage.
at::Tensor copy(const at::Tensor &from, bool comesFromStage) {
  at::Tensor source = from.contiguous(), result = at::empty_like(source);
  View read = viewOf(source), written = viewOf(result);
  launch(comesFromStage ? read : View(), written,
         [=] { std::memcpy(written.data(), read.data(), read.size()); });
  return result;
}

/// Where values come into a stage, or leave it; gradients go the other way.
template <bool isInput> struct Copy : torch::autograd::Function<Copy<isInput>> {
  static at::Tensor forward(torch::autograd::AutogradContext *,
                            const at::Tensor &x) {
    return copy(x, isInput);
  }
  static torch::autograd::tensor_list
  backward(torch::autograd::AutogradContext *,
           const torch::autograd::tensor_list &grads) {
    return {copy(grads[0], !isInput)};
  }
};

struct ModelStage : example::TorchStage {
  using TorchStage::TorchStage;

  void add(const ActionContext &work, at::Tensor &sum,
           const at::Tensor &gradient) {
    c10::OptionalStreamGuard guard = useStream(work);
    for (const at::Tensor &summand : {sum, gradient})
      launch(viewOf(summand), {}, [] {});
    TorchStage::add(work, sum, gradient);
    launch({}, viewOf(sum), [] {});
  }
};

constexpr int64_t rows = 3, width = 6;

/// The weights of a rank's stages, which begin equal in each run.
using Weights = std::map<std::pair<uint8_t, uint16_t>, at::Tensor>;

Weights weightsOf(const Program &program, uint32_t rank) {
  Weights weights;
  for (uint8_t p = 0; p != program.pipes.size; ++p)
    for (uint16_t s = 0; s != program.pipes[p].numStages(); ++s)
      if (program.pipes[p].rankOfStage[s] == rank)
        weights[{p, s}] = (torch::arange(width * width, torch::kDouble) + s)
                              .sin()
                              .view({width, width})
                              .requires_grad_();
  return weights;
}

/// Takes the gradients out of the model's memory before its streams end.
struct GradientsToHost {
  Weights &weights;

  ~GradientsToHost() {
    c10::StreamGuard host(wrap(nullptr));
    for (auto &[key, weight] : weights)
      if (weight.grad().defined())
        weight.mutable_grad() = weight.grad().clone();
  }
};

example::Network networkOf(const Program &program, const Weights &weights) {
  example::Network network;
  network.module = [&](uint8_t pipe, uint16_t stage, const Tensors &inputs) {
    at::Tensor x = inputs.front();
    if (program.pipes[pipe].hasSources(stage)) {
      x = Copy<true>::apply(x);
      for (size_t i = 1; i != inputs.size(); ++i)
        x = x + Copy<true>::apply(inputs[i]);
    }
    x = x.matmul(weights.at({pipe, stage})).tanh();
    return program.pipes[pipe].hasReaders(stage) ? Copy<false>::apply(x) : x;
  };
  network.input = [](uint8_t, uint32_t microbatch) {
    return torch::full({rows, width}, 0.1 * (microbatch + 1), torch::kDouble);
  };
  network.loss = [](uint8_t, uint32_t, const at::Tensor &output) {
    return output.square().mean();
  };
  network.shape = [](uint8_t, uint16_t) {
    return torch::empty({rows, width},
                        torch::TensorOptions(torch::kDouble).device(at::kMeta));
  };
  return network;
}

void runNccl(const Program &program, std::vector<Weights> &weights,
             bool usesCurrentStream, std::string &wrong) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  std::mutex mutex;
  std::vector<std::jthread> threads;
  for (uint32_t rank = 0; rank != program.numRanks; ++rank)
    threads.emplace_back([&, rank] {
      model::attachRank(int(rank), int(program.numRanks));
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclComm_t comm;
      ncclCommInitRankConfig(&comm, int(program.numRanks), id, int(rank),
                             &config);
      bool isGood = false;
      try {
        Nccl<at::Tensor> endpoint(comm);
        cudaStream_t used = endpoint.stream(0);
        if (usesCurrentStream)
          cudaStreamCreateWithFlags(&used, cudaStreamNonBlocking);
        c10::StreamGuard guard(wrap(used));
        Bytes<at::Tensor>::device = at::kCPU;
        example::Network network = networkOf(program, weights[rank]);
        if (!usesCurrentStream)
          network.stream = [&](uint16_t lane) {
            return wrap(endpoint.stream(lane));
          };
        GradientsToHost results{weights[rank]};
        ModelStage stage(program, network);
        run(program, rank, stage, endpoint);
        isGood = true;
      } catch (const std::exception &error) {
        std::lock_guard lock(mutex);
        wrong += std::string("\n  ") + error.what();
      }
      model::detachRank();
      if (isGood) // Else it has been aborted.
        ncclCommDestroy(comm);
    });
  threads.clear();
  for (const std::string &report : model::takeReports())
    wrong += "\n  " + report;
}

std::string check(const Program &program, bool usesCurrentStream) {
  std::vector<Weights> alone, together;
  std::vector<ModelStage> stages;
  for (uint32_t rank = 0; rank != program.numRanks; ++rank) {
    alone.push_back(weightsOf(program, rank));
    together.push_back(weightsOf(program, rank));
  }
  for (uint32_t rank = 0; rank != program.numRanks; ++rank)
    stages.emplace_back(program, networkOf(program, alone[rank]));
  runCooperative(program, std::span(stages));
  std::string wrong;
  runNccl(program, together, usesCurrentStream, wrong);
  for (uint32_t rank = 0; rank != program.numRanks && wrong.empty(); ++rank)
    for (const auto &[key, weight] : alone[rank])
      if (!torch::equal(weight.grad(), together[rank].at(key).grad()))
        wrong = concat("\n  other gradients of stage ", key.second);
  return wrong;
}

} // namespace

int main(int argc, char **argv) {
  ModelAllocator allocator;
  c10::SetCPUAllocator(&allocator, 100);
  bool usesCurrentStream = false;
  int programs = 0, failed = 0;
  for (int i = 1; i != argc; ++i) {
    if (!std::strcmp(argv[i], "current-stream")) {
      usesCurrentStream = true;
      continue;
    }
    std::ifstream file(argv[i]);
    LoadedProgram program = readJson(file);
    std::string wrong = check(program, usesCurrentStream);
    ++programs;
    failed += !wrong.empty();
    if (!wrong.empty())
      std::printf("%s:%s\n", argv[i], wrong.c_str());
  }
  std::printf("%d programs, %d failed\n", programs, failed);
  return failed != 0;
}
