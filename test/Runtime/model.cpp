// Runs programs through Nccl.h on the model of CUDA and NCCL, with real numbers
// and a thread a rank: ppcc-run-cuda-model [run-ahead] [wait-here] [drop |
// graph] PROGRAM.JSON... | sends
//
// drop: each wait for an event that rank 1 issues is left out of one run. The
// report must come where a search of the operations of that run finds two that
// nothing orders, and only there.
// graph: a step is captured, and launched three times.
// sends: a send must not wait for what its lane got behind its producer.
#include "CompareRuns.h"
#include "Network.h"

#include "Inputs/cuda-model/Model.h"
#include "ppcc/Runtime/Json.h"
#include "ppcc/Runtime/Nccl.h"

#include <fstream>

using namespace test;

namespace {

/// What kernels see of one.
using View = std::span<std::byte>;

Vector read(View view) {
  model::recordAccess(view.data(), view.size(), false);
  Vector result(view.size() / sizeof(double));
  std::memcpy(result.data(), view.data(), view.size());
  return result;
}
void write(View view, const Vector &values) {
  model::recordAccess(view.data(), view.size(), true);
  std::memcpy(view.data(), values.data(), view.size());
}

/// What kernels threw: without a wait one may run before what it reads is
/// there.
std::mutex thrownMutex;
std::string thrown;

/// Launches a kernel.
void launch(cudaStream_t stream, std::function<void()> kernel) {
  model::kernel(stream, [kernel = std::move(kernel)] {
    try {
      kernel();
    } catch (const std::exception &error) {
      std::lock_guard lock(thrownMutex);
      thrown += std::string(" ") + error.what();
    }
    return true;
  });
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

/// Launches what NetworkStage computes. Kernels keep nothing alive. Beside the
/// numbers, which the model does not see, each activation and the weights of
/// each stage have memory on the device that says whose they are; it moves to
/// the host and back, and is gathered from two replicas.
class ModelStage : public rt::StageHooks {
public:
  using Value = ModelVector;

  /// The communicators are of the replicas of this rank, or null.
  ModelStage(const rt::Program &program, uint32_t rank, Endpoint &endpoint,
             ncclComm_t gathers, ncclComm_t reduces)
      : endpoint(endpoint), gathers(gathers), reduces(reduces) {
    for (cudaStream_t *stream : {&toHost, &toDevice, &gathering, &reducing})
      *stream = cuda.newStream(false);
    for (uint8_t p = 0; p != program.pipes.size; ++p)
      for (uint16_t s = 0; s != program.pipes[p].numStages(); ++s)
        if (program.pipes[p].rankOfStage[s] == rank)
          addWeights({p, s});
    rt::checkCuda(cudaStreamSynchronize(toDevice), "cudaStreamSynchronize");
  }
  ~ModelStage() {
    cuda.synchronize();
    for (auto &[key, own] : weights)
      for (void *memory :
           {own.shard, own.isWhole ? own.all : nullptr, own.gradients, own.sum})
        if (memory)
          cudaFree(memory);
    for (Page &page : pages)
      cudaFreeHost(page.memory);
    cuda.destroy();
  }

  Value forward(const rt::ActionContext &work,
                const rt::Inputs<Value> &inputs) {
    Value out(valueBytes, endpoint.stream(work.lane));
    std::vector<View> views;
    for (size_t i = 0; i != inputs.size(); ++i)
      views.push_back(viewOf(inputs[i]));
    View all = weightsFor(work), kept;
    if (!work.isRestored)
      kept = keep(work);
    launch(work, [this, work, views, all, kept, out = viewOf(out)] {
      checkName(all, work, weightName);
      std::vector<rt::ValueCell<Vector>> held(views.size());
      std::vector<rt::ValueCell<Vector> *> pointers;
      for (size_t i = 0; i != views.size(); ++i) {
        held[i].value = read(views[i]);
        pointers.push_back(&held[i]);
      }
      write(out, network.forward(work, rt::Inputs<Vector>(pointers)));
      if (!kept.empty())
        writeName(kept, work, work.microbatch);
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
    View kept = keptBy(work);
    launch(work, [this, work, kept] {
      checkName(kept, work, work.microbatch);
      network.backward_weight(work);
    });
  }
  void add(const rt::ActionContext &work, Value &sum, const Value &gradient) {
    launch(work, [sum = viewOf(sum), gradient = viewOf(gradient)] {
      Vector both = read(sum);
      addTo(both, read(gradient));
      write(sum, both);
    });
  }
  size_t messageBytes(const rt::Label &) { return valueBytes; }
  size_t moveBytes(const rt::Label &) { return movedBytes; }
  /// The streams of a group have joined.
  void release(const rt::ActionContext &work) {
    ::launch(endpoint.stream(0), [this, work] { network.release(work); });
    letGo(work, endpoint.stream(0));
  }

  void perform(const rt::ActionContext &work) {
    std::string mnemonic = work.mnemonic();
    model::setPlace(std::to_string(work.stage) + mnemonic);
    if (mnemonic == "R")
      return restore(work);
    if (mnemonic == "OFFLOAD")
      return offload(work);
    if (mnemonic == "RELOAD")
      return reload(work);
    if (mnemonic.starts_with("UNSHARD"))
      return unshard(work);
    if (mnemonic.starts_with("RESHARD"))
      return reshard(work);
    if (mnemonic == "REDUCE_GRAD")
      return reduce(work);
    throw std::runtime_error("cannot perform " + mnemonic);
  }
  Value moveOut(const rt::ActionContext &work) {
    Value moved(movedBytes, endpoint.stream(work.lane));
    View kept = keptBy(work);
    launch(work, [this, work, kept, moved = viewOf(moved)] {
      checkName(kept, work, work.microbatch);
      write(moved, network.moveOut(work));
    });
    letGo(work, endpoint.stream(0));
    return moved;
  }
  void moveIn(const rt::ActionContext &work, Value &&moved) {
    View kept = keep(work);
    launch(work, [this, work, kept, moved = viewOf(moved)] {
      network.moveIn(work, read(moved));
      writeName(kept, work, work.microbatch);
    });
  }

  const NetworkStage &computed() const { return network; }
  /// Behind a step, on the host: compares what was reduced over the replicas.
  void compareSums(const Layers &expected, RunDifference &found) {
    cuda.synchronize();
    for (auto &[key, own] : weights) {
      if (!own.sum)
        continue;
      Vector half(width * width / 2);
      rt::checkCuda(cudaMemcpyAsync(half.data(), own.sum,
                                    half.size() * sizeof(double),
                                    cudaMemcpyDeviceToHost, toHost),
                    "cudaMemcpyAsync");
      const Vector &plain = expected.at(key).gradient;
      for (size_t i = 0; i != half.size(); ++i)
        if (own.isReduced &&
            std::abs(half[i] - 2 * plain[i + replica() * half.size()]) > 1e-11)
          found.wrong += " sum of stage " + std::to_string(key.second);
    }
  }
  /// The next step computes anew; nothing is under way.
  void beginStep() {
    cuda.synchronize();
    network.clear();
    for (Page &page : pages)
      page.read = nullptr;
    for (auto &[key, own] : weights)
      own.ready = nullptr, own.isReduced = false;
  }
  /// Lets the first lane wait for all that this stage has issued elsewhere.
  void join() {
    for (cudaStream_t stream : used)
      cuda.waitStream(endpoint.stream(0), stream);
    used.clear();
  }

private:
  using Backward = std::vector<Vector> (NetworkStage::*)(
      const rt::ActionContext &, Vector *);
  using Key = std::pair<uint8_t, uint16_t>;
  static constexpr size_t nameBytes = 4 * sizeof(double);
  static constexpr double weightName = -1;

  /// Pinned memory, and the copy that has read it last.
  struct Page {
    void *memory;
    cudaEvent_t read;
  };
  struct Kept {
    void *memory = nullptr;
    cudaEvent_t ready = nullptr; ///< Null: it was made on a lane.
    Page page{};
  };
  struct Weights {
    void *all = nullptr, *shard = nullptr, *gradients = nullptr, *sum = nullptr;
    bool isWhole = false; ///< They are never given up.
    bool isReduced = false;
    cudaEvent_t ready = nullptr;
  };

  static View viewOf(const Value &value) {
    return rt::Bytes<ModelVector>::of(value);
  }
  static View nameAt(void *memory) {
    return {static_cast<std::byte *>(memory), nameBytes};
  }
  static Vector nameOf(Key key, double of) {
    return {double(key.first), double(key.second), of, of};
  }
  static void writeName(View view, const rt::ActionContext &work, double of) {
    write(view, nameOf({work.pipe, work.stage}, of));
  }
  static void checkName(View view, const rt::ActionContext &work, double of) {
    if (read(view) != nameOf({work.pipe, work.stage}, of))
      throw std::runtime_error("memory of another stage or microbatch");
  }
  size_t replica() const {
    int rank = 0;
    ncclCommUserRank(gathers ? gathers : reduces, &rank);
    return size_t(rank);
  }

  void addWeights(Key key) {
    Weights &own = weights[key];
    Vector name = nameOf(key, weightName);
    size_t bytes = gathers ? nameBytes / 2 : nameBytes;
    void *&memory = gathers ? own.shard : own.all;
    own.isWhole = !gathers;
    rt::checkCuda(cudaMalloc(&memory, bytes), "cudaMalloc");
    rt::checkCuda(cudaMemcpyAsync(memory,
                                  name.data() + (gathers ? 2 * replica() : 0),
                                  bytes, cudaMemcpyHostToDevice, toDevice),
                  "cudaMemcpyAsync");
    if (!reduces)
      return;
    size_t all = width * width * sizeof(double);
    rt::checkCuda(cudaMalloc(&own.gradients, all), "cudaMalloc");
    rt::checkCuda(cudaMalloc(&own.sum, all / 2), "cudaMalloc");
    Vector zeros(width * width / 2);
    rt::checkCuda(cudaMemcpyAsync(own.sum, zeros.data(), all / 2,
                                  cudaMemcpyHostToDevice, toDevice),
                  "cudaMemcpyAsync");
  }

  std::tuple<uint8_t, uint16_t, uint32_t>
  keyOf(const rt::ActionContext &work) const {
    return {work.pipe, work.stage, work.microbatch};
  }
  /// Weights that a lane may read.
  View weightsFor(const rt::ActionContext &work) {
    Weights &own = weights.at({work.pipe, work.stage});
    if (!own.all)
      throw std::runtime_error("its weights are given up");
    awaitOn(endpoint.stream(work.lane), own.ready);
    return nameAt(own.all);
  }
  View keep(const rt::ActionContext &work) {
    Kept &kept = activations[keyOf(work)];
    kept = {};
    cudaMallocAsync(&kept.memory, nameBytes, endpoint.stream(work.lane));
    return nameAt(kept.memory);
  }
  View keptBy(const rt::ActionContext &work) {
    Kept &kept = activations.at(keyOf(work));
    if (!kept.memory)
      throw std::runtime_error("reads an activation that is on the host");
    awaitOn(endpoint.stream(work.lane), kept.ready);
    return nameAt(kept.memory);
  }
  void letGo(const rt::ActionContext &work, cudaStream_t stream) {
    auto kept = activations.extract(keyOf(work));
    if (!kept.empty())
      cudaFreeAsync(kept.mapped().memory, stream);
  }
  static void awaitOn(cudaStream_t stream, cudaEvent_t event) {
    if (event)
      rt::checkCuda(cudaStreamWaitEvent(stream, event, 0),
                    "cudaStreamWaitEvent");
  }
  cudaEvent_t recordOn(cudaStream_t stream) {
    cudaEvent_t event = cuda.acquireEvent();
    rt::checkCuda(cudaEventRecord(event, stream), "cudaEventRecord");
    used.insert(stream);
    return event;
  }

  void restore(const rt::ActionContext &work) {
    View kept = keep(work), all = weightsFor(work);
    launch(work, [work, kept, all] {
      checkName(all, work, weightName);
      writeName(kept, work, work.microbatch);
    });
  }
  void offload(const rt::ActionContext &work) {
    Kept &kept = activations.at(keyOf(work));
    if (pages.empty()) {
      pages.push_back({});
      rt::checkCuda(cudaMallocHost(&pages.back().memory, nameBytes),
                    "cudaMallocHost");
    }
    kept.page = pages.back();
    pages.pop_back();
    awaitOn(toHost, kept.page.read);
    cuda.waitStream(toHost, endpoint.stream(0));
    cudaMemcpyAsync(kept.page.memory, kept.memory, nameBytes,
                    cudaMemcpyDeviceToHost, toHost);
    cudaFreeAsync(std::exchange(kept.memory, nullptr), toHost);
    kept.ready = recordOn(toHost);
  }
  void reload(const rt::ActionContext &work) {
    Kept &kept = activations.at(keyOf(work));
    awaitOn(toDevice, kept.ready);
    cudaMallocAsync(&kept.memory, nameBytes, toDevice);
    cudaMemcpyAsync(kept.memory, kept.page.memory, nameBytes,
                    cudaMemcpyHostToDevice, toDevice);
    kept.ready = kept.page.read = recordOn(toDevice);
    pages.push_back(kept.page);
  }
  void unshard(const rt::ActionContext &work) {
    Weights &own = weights.at({work.pipe, work.stage});
    if (own.all)
      return;
    cuda.waitStream(gathering, endpoint.stream(0));
    cudaMallocAsync(&own.all, nameBytes, gathering);
    ncclAllGather(own.shard, own.all, nameBytes / 2, ncclInt8, gathers,
                  gathering);
    own.ready = recordOn(gathering);
  }
  void reshard(const rt::ActionContext &work) {
    Weights &own = weights.at({work.pipe, work.stage});
    if (own.all)
      cudaFreeAsync(std::exchange(own.all, nullptr), endpoint.stream(0));
  }
  void reduce(const rt::ActionContext &work) {
    Weights &own = weights.at({work.pipe, work.stage});
    cuda.waitStream(reducing, endpoint.stream(0));
    View gradients{static_cast<std::byte *>(own.gradients),
                   width * width * sizeof(double)};
    ::launch(reducing, [this, work, gradients] {
      write(gradients, network.layers().at({work.pipe, work.stage}).gradient);
    });
    ncclReduceScatter(own.gradients, own.sum, width * width / 2, ncclFloat64,
                      ncclSum, reduces, reducing);
    own.isReduced = true;
    recordOn(reducing);
  }

  std::vector<Value> gradients(const rt::ActionContext &work, Value *outputGrad,
                               Backward backward) {
    std::vector<Value> result;
    std::vector<View> views;
    result.reserve(numInputs(work));
    for (size_t i = numInputs(work); i != 0; --i)
      views.push_back(
          viewOf(result.emplace_back(valueBytes, endpoint.stream(work.lane))));
    View gradient = outputGrad ? viewOf(*outputGrad) : View();
    View all = weightsFor(work), kept = keptBy(work);
    launch(work, [this, work, gradient, all, kept, views, backward] {
      checkName(all, work, weightName);
      checkName(kept, work, work.microbatch);
      Vector values = gradient.empty() ? Vector() : read(gradient);
      auto found =
          (network.*backward)(work, gradient.empty() ? nullptr : &values);
      for (size_t i = 0; i != views.size(); ++i)
        write(views[i], found[i]);
    });
    return result;
  }
  void launch(const rt::ActionContext &work, std::function<void()> kernel) {
    model::setPlace(std::to_string(work.stage) + work.mnemonic() +
                    std::to_string(work.microbatch));
    ::launch(endpoint.stream(work.lane), std::move(kernel));
  }

  Endpoint &endpoint;
  ncclComm_t gathers, reduces;
  rt::CudaPool cuda;
  cudaStream_t toHost, toDevice, gathering, reducing;
  std::set<cudaStream_t> used; ///< Since the last join().
  std::map<Key, Weights> weights;
  std::map<std::tuple<uint8_t, uint16_t, uint32_t>, Kept> activations;
  std::vector<Page> pages; ///< Nobody's.
  NetworkStage network;
};

struct Mode {
  rt::Options run;
  rt::NcclOptions nccl;
  bool isCaptured = false;
};

ncclComm_t communicator(const ncclUniqueId &id, uint32_t rank, uint32_t size,
                        bool blocks) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocks;
  ncclComm_t comm;
  ncclCommInitRankConfig(&comm, int(size), id, int(rank), &config);
  return comm;
}

/// Captures a step, and launches it; compares each launch.
void replay(rt::Session<ModelStage, Endpoint> &session, ModelStage &stage,
            Endpoint &endpoint, const Layers &expected, RunDifference &found) {
  stage.beginStep();
  endpoint.beginCapture();
  session.step();
  stage.join();
  cudaGraph_t graph = endpoint.endCapture();
  cudaGraphExec_t executable;
  cudaGraphInstantiate(&executable, graph, 0);
  if (!stage.computed().layers().empty())
    found.wrong += " something ran while it was captured";
  for (int launch = 0; launch != 3; ++launch) {
    stage.beginStep();
    rt::checkCuda(cudaGraphLaunch(executable, endpoint.stream(0)),
                  "cudaGraphLaunch");
    endpoint.finish(std::chrono::minutes(10));
    compare(stage.computed().layers(), expected, found);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

/// Runs a program; adds what is wrong, and the layers that are right. Where it
/// has collectives of replicas there are two.
void checkRun(const rt::Program &program, const Mode &mode,
              RunDifference &found) {
  Layers expected = unpipelinedReference(program);
  bool gathers = false, reduces = false;
  for (const rt::Kind &kind : program.kinds) {
    gathers |= std::string_view(kind.mnemonic) == "UNSHARD";
    reduces |= std::string_view(kind.mnemonic) == "REDUCE_GRAD";
  }
  uint32_t replicas = gathers || reduces ? 2 : 1;
  uint32_t all = replicas * program.numRanks;
  // Of replicas, and of the ranks of one number in all of them, twice.
  std::vector<ncclUniqueId> ids(replicas + 2 * program.numRanks);
  for (ncclUniqueId &id : ids)
    ncclGetUniqueId(&id);
  std::mutex mutex;
  std::vector<std::jthread> threads;
  for (uint32_t number = 0; number != all; ++number)
    threads.emplace_back([&, number] {
      model::attachRank(int(number), int(all));
      uint32_t rank = number % program.numRanks;
      uint32_t replica = number / program.numRanks;
      std::vector<ncclComm_t> comms = {
          communicator(ids[replica], rank, program.numRanks, false)};
      for (uint32_t i = 0; i != 2; ++i)
        comms.push_back(communicator(ids[replicas + 2 * rank + i], replica,
                                     replicas, true));
      RunDifference own;
      try {
        Endpoint endpoint(comms[0], mode.nccl);
        ModelVector::stream = endpoint.stream(0);
        ModelStage stage(program, rank, endpoint, gathers ? comms[1] : nullptr,
                         reduces ? comms[2] : nullptr);
        rt::Session session(program, rank, stage, endpoint, mode.run);
        session.step();
        compare(stage.computed().layers(), expected, own);
        if (reduces)
          stage.compareSums(expected, own);
        if (mode.isCaptured)
          replay(session, stage, endpoint, expected, own);
      } catch (const std::exception &error) {
        own.wrong += std::string(" ") + error.what();
      }
      {
        std::lock_guard lock(mutex);
        found.exact += own.exact, found.reordered += own.reordered;
        found.wrong += own.wrong;
      }
      model::detachRank();
      for (ncclComm_t comm : comms)
        ncclCommDestroy(comm);
    });
  threads.clear();
  {
    std::lock_guard lock(thrownMutex);
    found.wrong += std::exchange(thrown, "");
  }
  for (const std::string &report : model::takeReports())
    found.wrong = " " + report;
}

/// Whether two operations touch the same bytes, one of them writing, or are of
/// one communicator, and no path leads from one to the other; or nothing that
/// is read has been written before. Shares nothing with the model's clocks.
bool hasRace(const std::deque<model::TracedOperation> &notes) {
  std::map<const model::TracedOperation *, size_t> number;
  std::vector<std::vector<bool>> isBehind;
  auto conflicts = [](const model::TracedOperation &a,
                      const model::TracedOperation &b) {
    if (a.comm && a.comm == b.comm)
      return true;
    for (const model::TracedOperation::Access &one : a.touched)
      for (const model::TracedOperation::Access &two : b.touched)
        if ((one.writes || two.writes) && one.begin < two.end &&
            two.begin < one.end)
          return true;
    return false;
  };
  for (const model::TracedOperation &note : notes) {
    size_t own = number.size();
    std::vector<bool> predecessors(own);
    for (const model::TracedOperation *other : note.predecessors) {
      size_t before = number.at(other);
      predecessors[before] = true;
      for (size_t i = 0; i != before; ++i)
        predecessors[i] = predecessors[i] || isBehind[before][i];
    }
    for (size_t i = 0; i != own; ++i)
      if (!predecessors[i] && conflicts(notes[i], note))
        return true;
    for (const model::TracedOperation::Access &touch : note.touched) {
      bool isWritten = touch.writes;
      for (size_t i = 0; i != own && !isWritten; ++i)
        for (const model::TracedOperation::Access &other : notes[i].touched)
          isWritten |= predecessors[i] && other.writes && !other.isMemory &&
                       other.begin < touch.end && touch.begin < other.end;
      if (!isWritten)
        return true;
    }
    number[&note] = own;
    isBehind.push_back(std::move(predecessors));
  }
  return false;
}

void dropWaits(const rt::Program &program, const Mode &mode) {
  RunDifference whole;
  checkRun(program, mode, whole);
  int waits = model::numWaits(1), missed = 0, unlike = !whole.wrong.empty();
  for (int wait = 0; wait != waits; ++wait) {
    model::traceRank(1);
    model::dropWait(1, wait);
    RunDifference found;
    checkRun(program, mode, found);
    missed += !found.wrong.empty();
    bool isWrong = hasRace(model::traced()) != !found.wrong.empty();
    unlike += isWrong;
    if (isWrong)
      std::printf("wait %d:%s\n", wait, found.wrong.c_str());
  }
  model::dropWait(-1, 0);
  model::traceRank(-1);
  std::printf("%s: %d of %d waits are missed, the others do no harm; unlike "
              "the search: %d\n",
              program.name, missed, waits, unlike);
}

/// Rank 0 makes a value, then runs a kernel that ends when rank 1 has got it:
/// whether the send comes through.
bool sendComesThrough(const rt::Program &program, bool knowsProducer) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  std::atomic<bool> hasCome = false;
  std::vector<std::jthread> threads;
  for (uint32_t rank = 0; rank != 2; ++rank)
    threads.emplace_back([&, rank] {
      using namespace std::chrono_literals;
      model::attachRank(int(rank), 2);
      ncclComm_t comm = communicator(id, rank, 2, false);
      try {
        Endpoint endpoint(comm);
        cudaStream_t lane = ModelVector::stream = endpoint.stream(0);
        endpoint.open(program, 1min);
        rt::Message<ModelVector> message{{0, rt::slot::Output, 0, 1, 0}, {}};
        if (rank == 0) {
          message.value = ModelVector(valueBytes, lane);
          View view = rt::Bytes<ModelVector>::of(message.value);
          launch(lane, [view] { write(view, Vector(width * samples)); });
          endpoint.recordProduced(0, 0);
          model::kernel(lane, [&] { return hasCome.load(); });
          if (knowsProducer)
            endpoint.sendProduced(1, std::move(message), 0);
          else
            endpoint.send(1, std::move(message));
        } else {
          endpoint.postReceive(0, message.label, valueBytes);
          endpoint.receive(0, message, 1min);
          View view = rt::Bytes<ModelVector>::of(message.value);
          launch(lane, [view, &hasCome] {
            read(view);
            hasCome = true;
          });
        }
        endpoint.finish(1min);
      } catch (const std::exception &) { // It is reported.
      }
      model::detachRank();
      ncclCommDestroy(comm);
    });
  threads.clear();
  std::vector<std::string> reports = model::takeReports();
  for (const std::string &report : reports)
    std::printf("%s\n", report.c_str());
  return reports.empty();
}

int trySends(const char *name) {
  std::ifstream file(name);
  rt::LoadedProgram program = rt::readJson(file);
  bool well = sendComesThrough(program.program(), true);
  bool late = sendComesThrough(program.program(), false);
  std::printf("behind its producer: %s; behind its lane: %s\n",
              well ? "comes" : "hangs", late ? "comes" : "hangs");
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  Mode mode;
  mode.nccl.waitsOnHost = true;
  bool drops = false;
  size_t programs = 0, failures = 0;
  RunDifference all;
  for (int i = 1; i != argc; ++i) {
    std::string word = argv[i];
    if (word == "sends")
      return trySends(argv[i + 1]);
    if (word == "run-ahead" || word == "graph") {
      mode.nccl.waitsOnHost = false;
      mode.isCaptured = word == "graph";
      continue;
    }
    if (word == "rendezvous") {
      mode.run.waitPolicy = rt::WaitPolicy::Rendezvous;
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
    RunDifference found;
    checkRun(program, mode, found);
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
