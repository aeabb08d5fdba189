// Nccl.h with the real NCCL and CUDA runtime: ppcc-runtime-nccl-check
// [PROGRAM.JSON]. Without a GPU nothing can run on them: this is to be compiled
// and linked, and says what it was linked with. With one it runs a program of
// one rank, step by step and as a graph.
#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Nccl.h"

#include <cstdio>
#include <fstream>

namespace rt = ppcc::rt;

namespace {

/// Memory of the device, freed in the order of a stream.
class Buffer {
public:
  Buffer() = default;
  Buffer(Buffer &&other) noexcept { swap(other); }
  Buffer &operator=(Buffer &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (memory)
      cudaFreeAsync(memory, stream);
  }

  std::span<std::byte> bytes() const {
    return {static_cast<std::byte *>(memory), size};
  }
  bool resize(size_t count, cudaStream_t on) {
    Buffer fresh;
    if (cudaMallocAsync(&fresh.memory, count, on) != cudaSuccess)
      return false;
    fresh.size = count;
    fresh.stream = on;
    swap(fresh);
    return true;
  }

private:
  void swap(Buffer &other) {
    std::swap(memory, other.memory);
    std::swap(size, other.size);
    std::swap(stream, other.stream);
  }

  void *memory = nullptr;
  size_t size = 0;
  cudaStream_t stream = nullptr;
};

} // namespace

template <> struct ppcc::rt::Bytes<Buffer> {
  static std::span<std::byte> of(Buffer &value) { return value.bytes(); }
  static bool resize(Buffer &value, size_t bytes) {
    return value.bytes().size() == bytes || value.resize(bytes, nullptr);
  }
};

namespace {

/// Passes zeros on.
struct Zeros : rt::StageHooks {
  using Value = Buffer;
  rt::Nccl<Buffer> &endpoint;
  size_t size;

  Zeros(rt::Nccl<Buffer> &endpoint, size_t size)
      : endpoint(endpoint), size(size) {}

  Buffer make(const rt::ActionContext &work) {
    Buffer buffer;
    cudaStream_t stream = endpoint.stream(work.lane);
    if (!buffer.resize(size, stream))
      throw std::runtime_error("no memory on the device");
    cudaMemsetAsync(buffer.bytes().data(), 0, size, stream);
    return buffer;
  }
  Buffer forward(const rt::ActionContext &work, const rt::Inputs<Buffer> &) {
    return make(work);
  }
  Buffer backward(const rt::ActionContext &work, Buffer *) {
    return make(work);
  }
  Buffer backward_input(const rt::ActionContext &work, Buffer *) {
    return make(work);
  }
  void backward_weight(const rt::ActionContext &) {}
  void add(const rt::ActionContext &, Buffer &, const Buffer &) {}
  size_t messageBytes(const rt::Label &) { return size; }
};

} // namespace

/// What a process with a GPU calls.
rt::Stats train(const rt::Program &program, const ncclUniqueId &id,
                uint32_t rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm;
  ncclResult_t state = ncclCommInitRankConfig(&comm, int(program.numRanks), id,
                                              int(rank), &config);
  while (state == ncclInProgress)
    ncclCommGetAsyncError(comm, &state);
  if (state != ncclSuccess)
    throw std::runtime_error(ncclGetErrorString(state));
  rt::Nccl<Buffer> endpoint(comm);
  Zeros stage(endpoint, 1 << 20);
  rt::Session session(program, rank, stage, endpoint);
  rt::Stats stats = session.step();
  endpoint.beginCapture();
  session.step();
  cudaGraph_t graph = endpoint.endCapture();
  cudaGraphExec_t executable;
  rt::checkCuda(cudaGraphInstantiate(&executable, graph, 0),
                "cudaGraphInstantiate");
  for (int launch = 0; launch != 3; ++launch) {
    rt::checkCuda(cudaGraphLaunch(executable, endpoint.stream(0)),
                  "cudaGraphLaunch");
    endpoint.finish(std::chrono::minutes(1));
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  return stats;
}

int main(int argc, char **argv) {
  int nccl = 0, cuda = 0, devices = 0;
  ncclGetVersion(&nccl);
  cudaRuntimeGetVersion(&cuda);
  if (cudaGetDeviceCount(&devices) != cudaSuccess)
    devices = 0;
  std::printf("NCCL %d, CUDA runtime %d, %d devices, engine at %p\n", nccl,
              cuda, devices, reinterpret_cast<void *>(&train));
  if (argc == 1)
    return 0;
  std::ifstream file(argv[1]);
  rt::LoadedProgram program = rt::readJson(file);
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  std::printf(
      "%llu actions, four times\n",
      static_cast<unsigned long long>(train(program.program(), id, 0).actions));
}
