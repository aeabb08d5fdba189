// A stream is a thread that runs what it gets in order, now and then with a
// pause, so that what is not ordered by events goes wrong. Device memory is
// memory of the process, but NCCL refuses any other. As in NCCL, sends and
// receives of two ranks match by their order alone, an operation holds its
// stream until all its partners have come, and the first one of two ranks waits
// on the host until they have met, or, without `blocking`, in the background.
#include "nccl.h"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace {

/// One lock for all that threads share: this is no benchmark.
std::mutex mutex;
std::condition_variable changed;
std::map<const char *, size_t> deviceMemory; // By its begin.
thread_local bool eventsFail = false;

[[noreturn]] void die(const char *what) {
  std::fprintf(stderr, "fake NCCL: %s\n", what);
  std::_Exit(99);
}

/// A pause of up to some hundred microseconds, on every fourth call or so.
void jitter() {
  thread_local uint64_t state =
      std::hash<std::thread::id>()(std::this_thread::get_id()) | 1;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  if (state % 4 == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(state / 8 % 200));
}

} // namespace

struct FakeEvent {
  std::shared_ptr<bool> done = std::make_shared<bool>(true);
};

struct FakeStream {
  std::deque<std::function<void()>> work;
  bool busy = false, ends = false;
  std::thread thread{[this] { run(); }};

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return ends || !work.empty(); });
      if (work.empty())
        return;
      std::function<void()> next = std::move(work.front());
      work.pop_front();
      busy = true;
      lock.unlock();
      jitter();
      next();
      next = nullptr;
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
  void push(std::function<void()> item) {
    std::lock_guard lock(mutex);
    work.push_back(std::move(item));
    changed.notify_all();
  }
};

extern "C" {

const char *cudaGetErrorString(cudaError_t) { return "a CUDA error"; }

cudaError_t cudaMalloc(void **memory, size_t size) {
  char *bytes = static_cast<char *>(std::malloc(size));
  std::memset(bytes, 0xAB, size);
  std::lock_guard lock(mutex);
  deviceMemory[bytes] = size;
  *memory = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void *memory) {
  std::lock_guard lock(mutex);
  if (deviceMemory.erase(static_cast<char *>(memory)) == 0)
    die("cudaFree of what is no device memory");
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *lowest, int *highest) {
  *lowest = 0, *highest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags,
                                         int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  *stream = new FakeStream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return stream->work.empty() && !stream->busy; });
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    std::lock_guard lock(mutex);
    stream->ends = true;
    changed.notify_all();
  }
  stream->thread.join();
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned) {
  std::shared_ptr<bool> done;
  {
    std::lock_guard lock(mutex);
    done = event->done;
  }
  stream->push([done] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return *done; });
  });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  *event = new FakeEvent;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  auto done = std::make_shared<bool>(false);
  {
    std::lock_guard lock(mutex);
    event->done = done;
  }
  stream->push([done] {
    std::lock_guard lock(mutex);
    *done = true;
    changed.notify_all();
  });
  return cudaSuccess;
}
/// It has no graphs.
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return cudaErrorInvalidValue;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *) {
  return cudaErrorInvalidValue;
}
cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaErrorInvalidValue; }
void fakeCudaBreak() { eventsFail = true; }
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (eventsFail)
    return cudaErrorLaunchFailure;
  std::lock_guard lock(mutex);
  return *event->done ? cudaSuccess : cudaErrorNotReady;
}
/// Host memory is pageable: it is read before the call returns, and written.
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind == cudaMemcpyHostToDevice)
    stream->push(
        [to, bytes = std::string(static_cast<const char *>(from), size)] {
          std::memcpy(to, bytes.data(), bytes.size());
        });
  else
    stream->push([=] { std::memcpy(to, from, size); });
  return kind == cudaMemcpyHostToDevice ? cudaSuccess
                                        : cudaStreamSynchronize(stream);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                               void *data) {
  stream->push([=] { function(data); });
  return cudaSuccess;
}

} // extern "C"

namespace {

/// One end of a message.
struct Transfer {
  bool sends;
  int peer;
  char *data;
  size_t size;
  bool done = false;
};
using Operation = std::vector<std::shared_ptr<Transfer>>;

/// What the communicators of one id share.
struct World;
/// The ranks that come to one split of a communicator.
struct Splitting {
  std::map<int, int> colours; ///< By rank.
  std::map<int, std::shared_ptr<World>> worlds;
};
struct World {
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Transfer>>> sends,
      receives;                         // By source and target.
  std::set<std::pair<int, int>> hasMet; // A rank and one that it came to.
  std::map<int, Splitting> splits;
};
std::map<std::string, std::weak_ptr<World>> worlds;

void checkMemory(const char *data, size_t size) {
  auto found = deviceMemory.upper_bound(data);
  if (found == deviceMemory.begin() ||
      (--found, data + size > found->first + found->second))
    die("a message lies outside device memory");
}

/// A member of the group that this thread has begun.
struct Pending {
  ncclComm_t comm;
  cudaStream_t stream;
  std::shared_ptr<Transfer> transfer;
};
thread_local std::vector<Pending> group;
thread_local int groupDepth = 0;

} // namespace

/// What outlives the handle of a communicator.
struct CommState {
  std::shared_ptr<World> world;
  int rank, size;
  bool blocking, aborted = false;
  ncclResult_t result = ncclSuccess;

  /// Waits until all partners have come to meet this rank for the first time.
  void meet(const std::set<int> &peers) {
    std::unique_lock lock(mutex);
    for (int peer : peers)
      world->hasMet.insert({rank, peer});
    changed.notify_all();
    changed.wait(lock, [&] {
      for (int peer : peers)
        if (!world->hasMet.contains({peer, rank}))
          return aborted;
      return true;
    });
  }

  /// Posts all transfers, and waits until each has had its partner.
  void run(const Operation &operation) {
    std::unique_lock lock(mutex);
    for (const std::shared_ptr<Transfer> &transfer : operation)
      post(transfer);
    changed.notify_all();
    changed.wait(lock, [&] {
      for (const std::shared_ptr<Transfer> &transfer : operation)
        if (!transfer->done)
          return aborted;
      return true;
    });
    for (auto *ends : {&world->sends, &world->receives})
      for (auto &[pair, queue] : *ends)
        for (const std::shared_ptr<Transfer> &transfer : operation)
          std::erase(queue, transfer); // Of one that was aborted.
  }
  void post(const std::shared_ptr<Transfer> &transfer) {
    checkMemory(transfer->data, transfer->size);
    auto pair = transfer->sends ? std::pair(rank, transfer->peer)
                                : std::pair(transfer->peer, rank);
    auto &sends = world->sends[pair], &receives = world->receives[pair];
    (transfer->sends ? sends : receives).push_back(transfer);
    while (!sends.empty() && !receives.empty()) {
      Transfer &from = *sends.front(), &to = *receives.front();
      if (from.size != to.size)
        die("a send and its receive differ in size");
      std::memcpy(to.data, from.data, to.size);
      from.done = to.done = true;
      sends.pop_front();
      receives.pop_front();
    }
  }
};

struct FakeComm {
  std::shared_ptr<CommState> state;
  std::set<int> connected;
  std::thread background; ///< Opens connections.
  int numSplits = 0;

  void launch(std::map<cudaStream_t, Operation> operations,
              const std::set<int> &peers) {
    auto start = [state = state, operations = std::move(operations), peers] {
      state->meet(peers);
      for (const auto &[stream, operation] : operations)
        stream->push([state, operation = operation] { state->run(operation); });
      std::lock_guard lock(mutex);
      if (state->result == ncclInProgress)
        state->result = ncclSuccess;
    };
    if (background.joinable())
      background.join();
    if (state->blocking || peers.empty())
      return start();
    std::lock_guard lock(mutex);
    state->result = ncclInProgress;
    background = std::thread(start);
  }
};

extern "C" {

const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited" : "an NCCL error";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static int last = 0;
  std::lock_guard lock(mutex);
  std::snprintf(id->internal, sizeof id->internal, "%d", ++last);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id,
                                    int rank, ncclConfig_t *config) {
  std::lock_guard lock(mutex);
  std::weak_ptr<World> &known = worlds[id.internal];
  std::shared_ptr<World> world = known.lock();
  if (!world)
    known = world = std::make_shared<World>();
  *comm = new FakeComm{std::make_shared<CommState>(
                           CommState{world, rank, size, config->blocking != 0}),
                       {},
                       {}};
  return ncclSuccess;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int colour, int, ncclComm_t *made,
                           ncclConfig_t *config) {
  auto state = comm->state;
  bool blocks = config->blocking != 0;
  int number = comm->numSplits++;
  auto split = [=] {
    std::unique_lock lock(mutex);
    Splitting &splitting = state->world->splits[number];
    splitting.colours[state->rank] = colour;
    changed.notify_all();
    changed.wait(lock, [&] {
      return state->aborted || int(splitting.colours.size()) == state->size;
    });
    int rank = 0, size = 0;
    for (auto [other, its] : splitting.colours) {
      rank += its == colour && other < state->rank;
      size += its == colour;
    }
    std::shared_ptr<World> &world = splitting.worlds[colour];
    if (!world)
      world = std::make_shared<World>();
    if (colour != NCCL_SPLIT_NOCOLOR && !state->aborted)
      *made = new FakeComm{
          std::make_shared<CommState>(CommState{world, rank, size, blocks}),
          {},
          {}};
    if (state->result == ncclInProgress)
      state->result = ncclSuccess;
  };
  if (comm->background.joinable())
    comm->background.join();
  if (state->blocking) {
    split();
    return ncclSuccess;
  }
  std::lock_guard lock(mutex);
  state->result = ncclInProgress;
  comm->background = std::thread(split);
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm->background.joinable())
    comm->background.join();
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    std::lock_guard lock(mutex);
    comm->state->aborted = true;
    changed.notify_all();
  }
  // The memory stays: the host may be in a call.
  if (comm->background.joinable())
    comm->background.join();
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
  std::lock_guard lock(mutex);
  *result = comm->state->result;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(ncclComm_t comm, int *size) {
  *size = comm->state->size;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank) {
  *rank = comm->state->rank;
  return ncclSuccess;
}
void fakeNcclBreak(ncclComm_t comm) {
  std::lock_guard lock(mutex);
  comm->state->result = ncclRemoteError;
}

ncclResult_t ncclGroupStart() {
  ++groupDepth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (groupDepth == 0)
    die("ncclGroupEnd without ncclGroupStart");
  if (--groupDepth != 0)
    return ncclSuccess;
  std::map<ncclComm_t, std::map<cudaStream_t, Operation>> operations;
  for (Pending &pending : std::exchange(group, {}))
    operations[pending.comm][pending.stream].push_back(pending.transfer);
  ncclResult_t result = ncclSuccess;
  for (auto &[comm, byStream] : operations) {
    std::set<int> peers;
    for (const auto &[stream, operation] : byStream)
      for (const std::shared_ptr<Transfer> &transfer : operation)
        if (comm->connected.insert(transfer->peer).second)
          peers.insert(transfer->peer);
    comm->launch(std::move(byStream), peers);
    if (!comm->state->blocking && !peers.empty())
      result = ncclInProgress;
  }
  return result;
}

static ncclResult_t transfer(bool sends, char *data, size_t size, int peer,
                             ncclComm_t comm, cudaStream_t stream) {
  if (peer < 0 || peer >= comm->state->size)
    return ncclInvalidArgument;
  ncclGroupStart();
  group.push_back(
      {comm, stream,
       std::make_shared<Transfer>(Transfer{sends, peer, data, size, false})});
  return ncclGroupEnd();
}
ncclResult_t ncclSend(const void *data, size_t size, ncclDataType_t, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return transfer(true, static_cast<char *>(const_cast<void *>(data)), size,
                  peer, comm, stream);
}
ncclResult_t ncclRecv(void *data, size_t size, ncclDataType_t, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return transfer(false, static_cast<char *>(data), size, peer, comm, stream);
}

ncclResult_t ncclAllGather(const void *own, void *all, size_t size,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  ncclGroupStart();
  for (int rank = 0; rank != comm->state->size; ++rank) {
    char *into = static_cast<char *>(all) + size_t(rank) * size;
    if (rank == comm->state->rank) {
      stream->push([=] { std::memcpy(into, own, size); });
      continue;
    }
    ncclSend(own, size, type, rank, comm, stream);
    ncclRecv(into, size, type, rank, comm, stream);
  }
  return ncclGroupEnd();
}

} // extern "C"
