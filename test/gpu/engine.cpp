// Programs on Nccl.h, with real numbers: engine [graph | host-waits | throw]
// RANK FILE PROGRAM... A rank is a process, on a GPU that it may share; rank 0
// writes the communicator's id to FILE. On the model of CUDA and NCCL ranks are
// threads of one process: engine [...] PROGRAM...
//
// Each program is run twice, or captured and launched three times, and compared
// with a plain loop. throw: rank 1 throws in its first backward; ranks tell
// each other by FILE.failed. Without arguments: says what it was linked with.
// A PROGRAM is a program.json, or LIBRARY.so:SYMBOL.
#include "CompareRuns.h"
#include "LoadProgram.h"

#include "ppcc/Runtime/Nccl.h"

#if __has_include("Model.h")
#include "Model.h"
#define PPCC_CUDA_MODEL
#else
#include <cuda_runtime_api.h>
#endif

#include <cstring>
#include <deque>
#include <filesystem>
#include <thread>

using namespace test;

namespace {

using View = std::span<std::byte>;

/// Numbers in memory of the device that comes and goes in the order of a
/// stream.
class DeviceBuffer {
public:
  DeviceBuffer() = default;
  DeviceBuffer(size_t bytes, cudaStream_t maker, cudaStream_t freer)
      : bytes(bytes), freer(freer) {
    rt::checkCuda(cudaMallocAsync(&memory, bytes, maker), "cudaMallocAsync");
  }
  DeviceBuffer(DeviceBuffer &&other) noexcept { swap(other); }
  DeviceBuffer &operator=(DeviceBuffer &&other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceBuffer() {
    if (memory)
      cudaFreeAsync(memory, freer);
  }
  View view() const { return {static_cast<std::byte *>(memory), bytes}; }

  /// That of the first lane: of what is received.
  static inline thread_local cudaStream_t stream = nullptr;

private:
  void swap(DeviceBuffer &other) {
    std::swap(memory, other.memory);
    std::swap(bytes, other.bytes);
    std::swap(freer, other.freer);
  }
  void *memory = nullptr;
  size_t bytes = 0;
  cudaStream_t freer = nullptr;
};

} // namespace

template <> struct ppcc::rt::Bytes<DeviceBuffer> {
  static View of(const DeviceBuffer &value) { return value.view(); }
  static bool resize(DeviceBuffer &value, size_t bytes) {
    if (value.view().size() != bytes)
      value = DeviceBuffer(bytes, DeviceBuffer::stream, DeviceBuffer::stream);
    return true;
  }
};

namespace {

using Endpoint = rt::Nccl<DeviceBuffer>;

/// For the model, which sees copies and no functions of the host.
void recordAccess([[maybe_unused]] View view, [[maybe_unused]] bool writes) {
#ifdef PPCC_CUDA_MODEL
  model::recordAccess(view.data(), view.size(), writes);
#endif
}

/// Pinned memory of one value, and the function that a stream calls.
struct Job {
  std::deque<View> pages;
  std::function<void()> call;

  ~Job() {
    for (View page : pages)
      cudaFreeHost(page.data());
  }
  View page(size_t number, size_t bytes) {
    while (pages.size() <= number) {
      void *memory;
      rt::checkCuda(cudaMallocHost(&memory, movedBytes), "cudaMallocHost");
      pages.push_back({static_cast<std::byte *>(memory), movedBytes});
    }
    return pages[number].first(bytes);
  }
};

/// What NetworkStage computes, in the order of the streams: values are copied
/// to pinned memory, a function of the host computes, results are copied back.
class CopyingStage : public rt::StageHooks {
public:
  using Value = DeviceBuffer;

  CopyingStage(Endpoint &endpoint, bool throws)
      : endpoint(endpoint), throws(throws) {}

  Value forward(const rt::ActionContext &work,
                const rt::Inputs<Value> &inputs) {
    Value out = newValue(work, valueBytes);
    std::vector<View> read;
    for (size_t i = 0; i != inputs.size(); ++i)
      read.push_back(inputs[i].view());
    launch(work, read, {out.view()}, [this, work](std::vector<Vector> given) {
      std::vector<rt::ValueCell<Vector>> held(given.size());
      std::vector<rt::ValueCell<Vector> *> pointers;
      for (size_t i = 0; i != given.size(); ++i) {
        held[i].value = std::move(given[i]);
        pointers.push_back(&held[i]);
      }
      return std::vector<Vector>{
          network.forward(work, rt::Inputs<Vector>(pointers))};
    });
    return out;
  }
  std::vector<Value> backward_input(const rt::ActionContext &work,
                                    Value *outputGrad) {
    return gradients(work, outputGrad, &NetworkStage::backward_input);
  }
  std::vector<Value> backward(const rt::ActionContext &work,
                              Value *outputGrad) {
    return gradients(work, outputGrad, &NetworkStage::backward);
  }
  void backward_weight(const rt::ActionContext &work) {
    launch(work, [this, work] { network.backward_weight(work); });
  }
  void add(const rt::ActionContext &work, Value &sum, const Value &gradient) {
    launch(work, {sum.view(), gradient.view()}, {sum.view()},
           [](std::vector<Vector> given) {
             addTo(given[0], given[1]);
             given.pop_back();
             return given;
           });
  }
  size_t messageBytes(const rt::Label &) { return valueBytes; }
  size_t moveBytes(const rt::Label &) { return movedBytes; }
  void perform(const rt::ActionContext &work) {
    launch(work, [this, work] { network.perform(work); });
  }
  Value moveOut(const rt::ActionContext &work) {
    Value moved = newValue(work, movedBytes);
    launch(work, {}, {moved.view()}, [this, work](const std::vector<Vector> &) {
      return std::vector<Vector>{network.moveOut(work)};
    });
    return moved;
  }
  void moveIn(const rt::ActionContext &work, Value &&moved) {
    launch(work, {moved.view()}, {}, [this, work](std::vector<Vector> given) {
      network.moveIn(work, std::move(given[0]));
      return std::vector<Vector>();
    });
  }
  /// The lanes of a group have joined.
  void release(rt::ActionContext work) {
    work.lane = 0;
    launch(work, [this, work] { network.release(work); });
  }

  /// The streams must be empty. Each step has the same jobs, which have their
  /// memory from the first on.
  void beginStep() {
    network.clear();
    numJobs = 0;
  }
  /// Adds what is wrong.
  void compareWith(const Layers &expected, RunDifference &found) {
    compare(network.layers(), expected, found);
    std::lock_guard lock(mutex);
    found.wrong += std::exchange(wrong, "");
  }

private:
  using Body = std::function<std::vector<Vector>(std::vector<Vector>)>;

  Value newValue(const rt::ActionContext &work, size_t bytes) const {
    return Value(bytes, endpoint.stream(work.lane), endpoint.stream(0));
  }
  void launch(const rt::ActionContext &work, std::function<void()> body) {
    launch(work, {}, {}, [body = std::move(body)](const auto &) {
      body();
      return std::vector<Vector>();
    });
  }
  void launch(const rt::ActionContext &work, std::vector<View> read,
              std::vector<View> written, Body body) {
    cudaStream_t stream = endpoint.stream(work.lane);
    if (numJobs == jobs.size())
      jobs.emplace_back();
    Job &job = jobs[numJobs++];
    std::vector<View> given, results;
    for (View from : read) {
      View page = given.emplace_back(job.page(given.size(), from.size()));
      rt::checkCuda(cudaMemcpyAsync(page.data(), from.data(), page.size(),
                                    cudaMemcpyDeviceToHost, stream),
                    "cudaMemcpyAsync");
    }
    for (View to : written)
      results.push_back(job.page(given.size() + results.size(), to.size()));
    job.call = [this, given, results, body = std::move(body)] {
      compute(given, results, body);
    };
    rt::checkCuda(
        cudaLaunchHostFunc(
            stream, [](void *of) { static_cast<Job *>(of)->call(); }, &job),
        "cudaLaunchHostFunc");
    for (size_t i = 0; i != written.size(); ++i)
      rt::checkCuda(cudaMemcpyAsync(written[i].data(), results[i].data(),
                                    results[i].size(), cudaMemcpyHostToDevice,
                                    stream),
                    "cudaMemcpyAsync");
  }
  /// Runs where a stream calls the host.
  void compute(const std::vector<View> &given, const std::vector<View> &results,
               const Body &body) {
    try {
      std::vector<Vector> values;
      for (View page : given) {
        recordAccess(page, false);
        values.emplace_back(page.size() / sizeof(double));
        std::memcpy(values.back().data(), page.data(), page.size());
      }
      values = body(std::move(values));
      for (size_t i = 0; i != results.size(); ++i) {
        recordAccess(results[i], true);
        std::memcpy(results[i].data(), values.at(i).data(), results[i].size());
      }
    } catch (const std::exception &error) {
      std::lock_guard lock(mutex);
      wrong += std::string(" ") + error.what();
    }
  }
  std::vector<Value> gradients(const rt::ActionContext &work, Value *outputGrad,
                               std::vector<Vector> (NetworkStage::*function)(
                                   const rt::ActionContext &, Vector *)) {
    if (throws && work.rank == 1)
      throw std::runtime_error("out of luck");
    std::vector<Value> result;
    std::vector<View> read, written;
    for (size_t i = numInputs(work); i != 0; --i)
      written.push_back(result.emplace_back(newValue(work, valueBytes)).view());
    if (outputGrad)
      read.push_back(outputGrad->view());
    launch(
        work, read, written, [this, work, function](std::vector<Vector> given) {
          return (network.*function)(work, given.empty() ? nullptr : &given[0]);
        });
    return result;
  }

  Endpoint &endpoint;
  bool throws;
  std::deque<Job> jobs;
  size_t numJobs = 0; ///< Of this step.
  std::mutex mutex;   ///< Of `wrong`.
  std::string wrong;
  NetworkStage network;
};

/// How ranks hear of each other.
struct Meeting {
  ncclUniqueId id;
  std::string file; ///< Empty where they are threads.
};

/// Captures a step, and launches it; compares each launch.
void replay(rt::Session<CopyingStage, Endpoint> &session, CopyingStage &stage,
            Endpoint &endpoint, const Layers &expected, RunDifference &found) {
  stage.beginStep();
  endpoint.beginCapture();
  session.step();
  cudaGraph_t graph = endpoint.endCapture();
  cudaGraphExec_t executable;
  rt::checkCuda(cudaGraphInstantiate(&executable, graph, 0),
                "cudaGraphInstantiate");
  for (int launch = 0; launch != 3; ++launch) {
    stage.beginStep();
    rt::checkCuda(cudaGraphLaunch(executable, endpoint.stream(0)),
                  "cudaGraphLaunch");
    endpoint.finish(std::chrono::minutes(1));
    stage.compareWith(expected, found);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

/// Runs the programs on one communicator; says which are wrong.
int runRank(uint32_t rank, const Meeting &meeting, const std::string &mode,
            const std::vector<const rt::Program *> &programs) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm;
  ncclCommInitRankConfig(&comm, int(programs[0]->numRanks), meeting.id,
                         int(rank), &config);
  rt::NcclOptions options;
  options.waitsOnHost = mode == "host-waits" || mode == "throw";
  options.timeout = std::chrono::minutes(1);
  std::string failed = meeting.file + ".failed";
  if (!meeting.file.empty()) {
    options.broadcastFailure = [failed](const std::string &text) {
      std::ofstream(failed + ".new") << text;
      std::filesystem::rename(failed + ".new", failed);
    };
    options.peerFailure = [failed]() -> std::optional<std::string> {
      std::string text;
      if (std::ifstream file(failed); file)
        return std::getline(file, text), text;
      return std::nullopt;
    };
  }
  RunDifference all;
  int failures = 0;
  size_t done = 0;
  std::string error;
  try {
    Endpoint endpoint(comm, options);
    DeviceBuffer::stream = endpoint.stream(0);
    CopyingStage stage(endpoint, mode == "throw");
    rt::Session session(*programs[0], rank, stage, endpoint);
    for (; done != programs.size(); ++done) {
      const rt::Program &program = *programs[done];
      if (done != 0)
        session.link(program);
      Layers expected = unpipelinedReference(program);
      RunDifference found;
      for (int step = 0; step != 2; ++step) {
        stage.beginStep();
        session.step();
        stage.compareWith(expected, found);
      }
      if (mode == "graph")
        replay(session, stage, endpoint, expected, found);
      all.exact += found.exact, all.reordered += found.reordered;
      failures += !found.wrong.empty();
      if (!found.wrong.empty())
        std::printf("rank %u, program %zu, %s:%s\n", rank, done, program.name,
                    found.wrong.c_str());
    }
  } catch (const std::exception &caught) { // It has been aborted.
    error = caught.what();
  }
  if (!error.empty()) {
    std::printf("rank %u, program %zu, %s: %s\n", rank, done,
                programs[done]->name, error.c_str());
    ++failures;
  }
  std::printf("rank %u: %zu of %zu programs, %zu layers exact, %zu in another "
              "order, %d failed\n",
              rank, done, programs.size(), all.exact, all.reordered, failures);
  std::fflush(stdout);
#ifdef PPCC_CUDA_MODEL
  model::detachRank();
#endif
  if (error.empty())
    ncclCommDestroy(comm);
  return failures;
}

#ifndef PPCC_CUDA_MODEL
/// Rank 0 makes the id, and writes it.
Meeting meet(uint32_t rank, const std::string &file) {
  Meeting meeting{{}, file};
  if (rank == 0) {
    ncclGetUniqueId(&meeting.id);
    std::ofstream(file + ".new", std::ios::binary)
        .write(meeting.id.internal, sizeof meeting.id.internal);
    std::filesystem::rename(file + ".new", file);
    return meeting;
  }
  while (!std::filesystem::exists(file))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::ifstream(file, std::ios::binary)
      .read(meeting.id.internal, sizeof meeting.id.internal);
  return meeting;
}
#endif

} // namespace

int main(int argc, char **argv) {
  std::deque<std::string> words(argv + 1, argv + argc);
  auto next = [&] {
    std::string word = words.empty() ? "" : words.front();
    if (!words.empty())
      words.pop_front();
    return word;
  };
  std::string mode;
  if (!words.empty() &&
      (words[0] == "graph" || words[0] == "host-waits" || words[0] == "throw"))
    mode = next();
#ifndef PPCC_CUDA_MODEL
  if (words.empty()) {
    int nccl = 0, cuda = 0, devices = 0;
    ncclGetVersion(&nccl);
    cudaRuntimeGetVersion(&cuda);
    if (cudaGetDeviceCount(&devices) != cudaSuccess)
      devices = 0;
    std::printf("NCCL %d, CUDA runtime %d, %d devices\n", nccl, cuda, devices);
    return 0;
  }
  uint32_t rank = static_cast<uint32_t>(std::stoul(next()));
  std::string file = next();
#endif
  std::vector<LoadedFile> loaded;
  for (const std::string &word : words)
    loaded.push_back(loadFile(word));
  std::vector<const rt::Program *> programs;
  for (const LoadedFile &one : loaded)
    programs.push_back(&one.program());
  if (programs.empty())
    return 2;
#ifdef PPCC_CUDA_MODEL
  Meeting meeting;
  ncclGetUniqueId(&meeting.id);
  uint32_t ranks = programs[0]->numRanks;
  std::atomic<int> failures = 0;
  std::vector<std::jthread> threads;
  for (uint32_t rank = 0; rank != ranks; ++rank)
    threads.emplace_back([&, rank] {
      model::attachRank(int(rank), int(ranks));
      failures += runRank(rank, meeting, mode, programs);
    });
  threads.clear();
  for (const std::string &report : model::takeReports()) {
    std::printf("%s\n", report.c_str());
    ++failures;
  }
  return failures != 0;
#else
  return runRank(rank, meet(rank, file), mode, programs) != 0;
#endif
}
