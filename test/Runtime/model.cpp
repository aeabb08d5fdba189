// Runs programs through Nccl.h on the model of CUDA and NCCL, with real numbers
// and a thread a rank: ppcc-run-model [run-ahead] [wait-here] [drop]
// PROGRAM.JSON...
//
// drop: each of the first 60 waits for events that rank 1 issues is left out of
// one run. Prints how many of these runs are reported: the others' waits are
// implied by what else orders the streams.
#include "Network.h"
#include "Verdict.h"

#include "Inputs/cuda-model/Model.h"
#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Nccl.h"

#include <fstream>

using namespace test;

namespace {

/// What kernels see of one.
using View = std::span<std::byte>;

Vector read(View view) {
  model::touch(view.data(), view.size(), false);
  Vector result(view.size() / sizeof(double));
  std::memcpy(result.data(), view.data(), view.size());
  return result;
}
void write(View view, const Vector &values) {
  model::touch(view.data(), view.size(), true);
  std::memcpy(view.data(), values.data(), view.size());
}

/// Launches a kernel.
void launch(cudaStream_t stream, std::function<void()> kernel) {
  auto call = [](void *data) {
    std::unique_ptr<std::function<void()>> owned(
        static_cast<std::function<void()> *>(data));
    (*owned)();
  };
  cudaLaunchHostFunc(stream, call,
                     new std::function<void()>(std::move(kernel)));
}

/// Numbers on the device, in memory that comes and goes in the order of a
/// stream.
class ModelVector {
public:
  static inline thread_local cudaStream_t stream = nullptr;

  ModelVector() = default;
  /// Made in the order of one stream, given back in that of the first lane.
  ModelVector(size_t bytes, cudaStream_t maker) : bytes(bytes) {
    cudaMallocAsync(&memory, bytes, maker);
  }
  /// Copied in the order of the first lane.
  ModelVector(const ModelVector &other) : ModelVector(other.bytes, stream) {
    launch(stream, [from = View(other.data(), bytes),
                    to = View(data(), bytes)] { write(to, read(from)); });
  }
  ModelVector(ModelVector &&other) noexcept { *this = std::move(other); }
  ModelVector &operator=(ModelVector &&other) noexcept {
    std::swap(memory, other.memory);
    std::swap(bytes, other.bytes);
    return *this;
  }
  ~ModelVector() { resize(0); }

  std::byte *data() const { return static_cast<std::byte *>(memory); }
  size_t size() const { return bytes; }
  void resize(size_t count) {
    if (count == bytes)
      return;
    if (bytes != 0)
      cudaFreeAsync(std::exchange(memory, nullptr), stream);
    if (count != 0)
      cudaMallocAsync(&memory, count, stream);
    bytes = count;
  }

private:
  void *memory = nullptr;
  size_t bytes = 0;
};

} // namespace

template <> struct ppcc::rt::Bytes<ModelVector> {
  static std::span<std::byte> of(const ModelVector &value) {
    return {value.data(), value.size()};
  }
  static bool resize(ModelVector &value, size_t bytes) {
    value.resize(bytes);
    return true;
  }
};

namespace {

using Endpoint = rt::Nccl<ModelVector>;

/// Launches what NetworkStage computes. Kernels keep nothing alive.
class ModelStage : public rt::StageHooks {
public:
  using Value = ModelVector;

  explicit ModelStage(Endpoint &endpoint) : endpoint(endpoint) {}

  Value forward(const rt::Work &work, const rt::Inputs<Value> &inputs) {
    Value out(valueBytes, endpoint.stream(work.lane));
    std::vector<View> views;
    for (size_t i = 0; i != inputs.size(); ++i)
      views.push_back(viewOf(inputs[i]));
    launch(work, [this, work, views, out = viewOf(out)] {
      std::vector<rt::Held<Vector>> held(views.size());
      std::vector<rt::Held<Vector> *> pointers;
      for (size_t i = 0; i != views.size(); ++i) {
        held[i].value = read(views[i]);
        pointers.push_back(&held[i]);
      }
      write(out, network.forward(work, rt::Inputs<Vector>(pointers)));
    });
    return out;
  }
  std::vector<Value> backward_input(const rt::Work &work, Value *outputGrad) {
    return gradients(work, outputGrad, &NetworkStage::backward_input);
  }
  std::vector<Value> backward(const rt::Work &work, Value *outputGrad) {
    return gradients(work, outputGrad, &NetworkStage::backward);
  }
  void backward_weight(const rt::Work &work) {
    launch(work, [this, work] { network.backward_weight(work); });
  }
  void add(const rt::Work &work, Value &sum, const Value &gradient) {
    launch(work, [sum = viewOf(sum), gradient = viewOf(gradient)] {
      Vector both = read(sum);
      addTo(both, read(gradient));
      write(sum, both);
    });
  }
  size_t messageBytes(const rt::Label &) { return valueBytes; }
  void release(const rt::Work &work) {
    launch(work, [this, work] { network.release(work); });
  }
  const NetworkStage &computed() const { return network; }

private:
  using Backward = std::vector<Vector> (NetworkStage::*)(const rt::Work &,
                                                         Vector *);

  static View viewOf(const Value &value) {
    return rt::Bytes<ModelVector>::of(value);
  }
  std::vector<Value> gradients(const rt::Work &work, Value *outputGrad,
                               Backward backward) {
    std::vector<Value> result;
    std::vector<View> views;
    result.reserve(numInputs(work));
    for (size_t i = numInputs(work); i != 0; --i)
      views.push_back(
          viewOf(result.emplace_back(valueBytes, endpoint.stream(work.lane))));
    View gradient = outputGrad ? viewOf(*outputGrad) : View();
    launch(work, [this, work, gradient, views, backward] {
      Vector values = gradient.empty() ? Vector() : read(gradient);
      auto found =
          (network.*backward)(work, gradient.empty() ? nullptr : &values);
      for (size_t i = 0; i != views.size(); ++i)
        write(views[i], found[i]);
    });
    return result;
  }
  void launch(const rt::Work &work, std::function<void()> kernel) {
    model::setPlace(std::to_string(work.stage) + work.letters() +
                    std::to_string(work.microbatch));
    ::launch(endpoint.stream(work.lane), std::move(kernel));
  }

  Endpoint &endpoint;
  NetworkStage network;
};

struct Mode {
  rt::Options run;
  rt::NcclOptions nccl;
};

/// Runs a program; adds what is wrong, and the layers that are right.
void judge(const rt::Program &program, const Mode &mode, Distance &found) {
  Layers expected = plainLoop(program);
  std::mutex mutex;
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  std::vector<std::jthread> threads;
  for (uint32_t rank = 0; rank != program.numRanks; ++rank)
    threads.emplace_back([&, rank] {
      model::beginRank(int(rank), int(program.numRanks));
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      ncclComm_t comm;
      ncclCommInitRankConfig(&comm, int(program.numRanks), id, int(rank),
                             &config);
      {
        Endpoint endpoint(comm, mode.nccl);
        ModelVector::stream = endpoint.stream(0);
        ModelStage stage(endpoint);
        std::string wrong;
        try {
          rt::run(program, rank, stage, endpoint, mode.run);
        } catch (const rt::Error &error) {
          wrong = std::string(" ") + error.what();
        }
        std::lock_guard lock(mutex);
        compare(stage.computed().layers(), expected, found);
        found.wrong += wrong;
      }
      model::endRank();
      ncclCommDestroy(comm);
    });
  threads.clear();
  for (const std::string &report : model::takeReports())
    found.wrong = " " + report;
}

void dropWaits(const rt::Program &program, const Mode &mode) {
  constexpr int numWaits = 60;
  int reported = 0;
  for (int wait = 0; wait != numWaits; ++wait) {
    model::dropWait(1, wait);
    Distance found;
    judge(program, mode, found);
    reported += !found.wrong.empty();
  }
  model::dropWait(-1, 0);
  std::printf("%s: %d of %d waits are missed\n", program.name, reported,
              numWaits);
}

} // namespace

int main(int argc, char **argv) {
  Mode mode;
  mode.nccl.waitsOnHost = true;
  bool drops = false;
  size_t programs = 0, failures = 0;
  Distance all;
  for (int i = 1; i != argc; ++i) {
    std::string word = argv[i];
    if (word == "run-ahead") {
      mode.nccl.waitsOnHost = false;
      continue;
    }
    if (word == "wait-here") {
      mode.run.waits = rt::Waits::Here;
      continue;
    }
    if (word == "drop") {
      drops = true;
      continue;
    }
    std::ifstream file(word);
    rt::LoadedProgram program = rt::readJson(file);
    if (drops) {
      dropWaits(program, mode);
      continue;
    }
    Distance found;
    judge(program, mode, found);
    ++programs;
    all.exact += found.exact, all.reordered += found.reordered;
    failures += !found.wrong.empty();
    if (!found.wrong.empty())
      std::printf("%s:%s\n", word.c_str(), found.wrong.c_str());
  }
  std::printf("%zu programs, %zu layers exact, %zu in another order, %zu "
              "failed\n",
              programs, all.exact, all.reordered, failures);
  return failures != 0;
}
