// Nothing runs by itself: streams are queues, and whoever asks the device for
// something first runs what can run, of all ranks. What an operation is ordered
// behind is known when it is issued, from the order of its stream, the events
// that the stream waits for and what the host has waited for: a vector clock of
// each rank, with an entry for the host and for each stream. Two operations
// that touch the same bytes, one of them writing, must be ordered by it. That
// is stricter than a run, in which they may happen to be: nothing is left to
// chance, and each report names both operations.
//
// Of NCCL it asks what its manual says and no run shows: that the operations of
// a communicator are ordered among themselves on each rank, that groups are
// closed before anything is waited for, that the two ends of a message agree in
// size. Sends have no buffers: each holds its stream until its receive is at
// the head of another. When no stream and no host can go on it says what each
// waits for, and which two ends are on different communicators.
#include "Model.h"

#include <algorithm>
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

namespace {

/// Of one rank: how far the host and each stream were.
struct Clock {
  std::vector<uint64_t> at;

  uint64_t &operator[](size_t entity) {
    if (at.size() <= entity)
      at.resize(entity + 1);
    return at[entity];
  }
  bool covers(size_t entity, uint64_t time) const {
    return entity < at.size() && at[entity] >= time;
  }
  void join(const Clock &other) {
    for (size_t i = 0; i != other.at.size(); ++i)
      (*this)[i] = std::max((*this)[i], other.at[i]);
  }
};

/// What was issued, or done by the host.
struct Operation : std::enable_shared_from_this<Operation> {
  std::string what;
  size_t entity = 0;
  uint64_t time = 0;
  Clock clock;
  std::function<bool()> run; ///< False when it cannot end yet.

  bool isBehind(const Operation &other) const {
    return clock.covers(other.entity, other.time);
  }
};
using OperationPtr = std::shared_ptr<Operation>;

struct Access {
  size_t begin, end;
  bool writes;
  OperationPtr by;
};

struct Allocation {
  std::vector<char> bytes;
  OperationPtr madeBy, freedBy;
  std::vector<Access> accesses; ///< Those that later ones can conflict with.
};

struct World;
/// One end of a message, or of a collective.
struct End {
  enum Kind { Send, Recv, Gather } kind;
  int peer;
  char *data, *into;
  size_t size;
  OperationPtr by;
  bool met = false;
};

struct Device {
  int rank = 0;
  Clock clock; ///< Of the host.
  std::vector<cudaStream_t> streams;
  size_t nextEntity = 1;
  std::map<const char *, Allocation> memory;
  uint64_t waitsAt = ~uint64_t(0); ///< The progress that it has seen.
  std::string place;
  int groupDepth = 0;
  std::string groupPlace;
  std::vector<std::pair<ncclComm_t, std::pair<cudaStream_t, End>>> group;
};

std::recursive_mutex mutex;
std::condition_variable_any allHere;
std::map<int, std::unique_ptr<Device>> devices;
std::vector<std::string> reports;
std::vector<std::unique_ptr<World>> worlds;
uint64_t progress = 0;
int droppedRank = -1, waitsToDropped = 0;
int hosts = 0; ///< Ranks that have not ended.
bool isBroken = false;
thread_local Device *here = nullptr;
thread_local Operation *running = nullptr;

void report(const std::string &text) {
  if (!isBroken)
    reports.push_back(text);
  isBroken = true;
}

} // namespace

struct FakeStream {
  Device *device;
  size_t entity;
  Clock clock;
  std::deque<OperationPtr> work;
  bool isGone = false;
};
struct FakeEvent {
  struct State {
    Clock clock;
    bool done = false;
  };
  std::shared_ptr<State> state;
};
struct FakeComm {
  World *world;
  int rank;
  OperationPtr last;
  bool aborted = false;
};

namespace {

struct World {
  int number, size;
  std::map<std::pair<int, int>, std::deque<End *>> sends, receives;
  std::map<int, std::deque<End *>> gathers;
};

std::string nameOf(const FakeStream &stream) {
  return "stream " + std::to_string(stream.entity) + " of rank " +
         std::to_string(stream.device->rank);
}

std::string describe(const std::string &what, const std::string &where) {
  return what + " on " + where +
         (here->place.empty() ? "" : " (" + here->place + ")");
}

void refuseOpenGroup(const char *what) {
  if (here->groupDepth != 0)
    report(std::string(what) + " while a group is open, begun " +
           here->groupPlace);
}

OperationPtr issue(FakeStream &stream, const std::string &what,
                   std::function<bool()> run) {
  if (stream.isGone)
    report(describe(what, nameOf(stream)) + ", which has been destroyed");
  if (stream.device != here)
    report(describe(what, nameOf(stream)) + " from rank " +
           std::to_string(here->rank));
  auto operation = std::make_shared<Operation>();
  operation->what = describe(what, nameOf(stream));
  operation->entity = stream.entity;
  stream.clock.join(here->clock);
  operation->time = ++stream.clock[stream.entity];
  operation->clock = stream.clock;
  operation->run = std::move(run);
  stream.work.push_back(operation);
  return operation;
}

OperationPtr byHost(const std::string &what) {
  auto operation = std::make_shared<Operation>();
  operation->what =
      describe(what, "the host of rank " + std::to_string(here->rank));
  operation->time = ++here->clock[0];
  operation->clock = here->clock;
  return operation;
}

Allocation *allocationAt(Device &device, const char *data, size_t size) {
  auto found = device.memory.upper_bound(data);
  if (found == device.memory.begin())
    return nullptr;
  --found;
  return data + size <= found->first + found->second.bytes.size()
             ? &found->second
             : nullptr;
}

/// Notes what an operation touches, and reports whom it races with.
void access(Device &device, const OperationPtr &by, const void *data,
            size_t size, bool writes) {
  const char *at = static_cast<const char *>(data);
  Allocation *memory = allocationAt(device, at, size);
  if (!memory)
    return report(by->what + " touches what is no device memory of the rank");
  if (memory->freedBy && !memory->freedBy->isBehind(*by))
    return report(by->what +
                  " uses memory that may be free: " + memory->freedBy->what);
  if (!by->isBehind(*memory->madeBy))
    return report(by->what +
                  " may come before its memory: " + memory->madeBy->what);
  size_t begin = size_t(at - memory->bytes.data()), end = begin + size;
  bool isWritten = writes;
  for (const Access &other : memory->accesses) {
    if (other.begin >= end || begin >= other.end || other.by == by)
      continue;
    isWritten |= other.writes && by->isBehind(*other.by);
    if ((writes || other.writes) && !by->isBehind(*other.by) &&
        !other.by->isBehind(*by))
      return report(by->what + (writes ? " writes" : " reads") + " what " +
                    other.by->what + (other.writes ? " writes" : " reads") +
                    ", and nothing orders them");
  }
  if (!isWritten && size != 0)
    return report(by->what + " reads what nobody has written before: " +
                  memory->madeBy->what);
  // Who comes behind this comes behind those that it covers.
  std::erase_if(memory->accesses, [&](const Access &other) {
    return writes && other.begin >= begin && other.end <= end &&
           by->isBehind(*other.by);
  });
  memory->accesses.push_back({begin, end, writes, by});
}

void release(Device &device, const OperationPtr &by, void *data) {
  auto found = device.memory.find(static_cast<char *>(data));
  if (found == device.memory.end())
    return report(by->what + " of what is no device memory of the rank");
  Allocation &memory = found->second;
  if (memory.freedBy)
    return report(by->what + " of what is free: " + memory.freedBy->what);
  if (!by->isBehind(*memory.madeBy))
    return report(by->what +
                  " may come before its memory: " + memory.madeBy->what);
  for (const Access &other : memory.accesses)
    if (!by->isBehind(*other.by))
      return report(by->what + " frees what " + other.by->what +
                    " may still use");
  memory.freedBy = by;
}

void allocate(Device &device, void **data, size_t size, OperationPtr by) {
  Allocation made;
  made.bytes.assign(std::max<size_t>(size, 1), char(0xAB));
  made.madeBy = std::move(by);
  *data = made.bytes.data();
  device.memory[made.bytes.data()] = std::move(made);
}

/// Runs what can run.
void pump() {
  for (bool moved = true; moved && !isBroken;) {
    moved = false;
    for (auto &[rank, device] : devices)
      for (cudaStream_t stream : device->streams)
        while (!stream->work.empty() && !isBroken) {
          OperationPtr operation = stream->work.front();
          if (!operation->run())
            break;
          stream->work.pop_front();
          moved = true;
          ++progress;
        }
  }
}

/// Two ends of which each waits on another communicator, in words.
std::string endsApart() {
  for (auto &world : worlds)
    for (auto &[pair, sends] : world->sends)
      for (auto &other : worlds)
        if (other != world && !sends.empty())
          if (auto found = other->receives.find(pair);
              found != other->receives.end() && !found->second.empty())
            return "\n  the two ends are on different communicators: " +
                   sends.front()->by->what + " and " +
                   found->second.front()->by->what;
  return "";
}

/// The host of this rank cannot go on: when none can, nothing ever will.
void waitsHere() {
  here->waitsAt = progress;
  int waiting = 0;
  for (auto &[rank, device] : devices)
    waiting += device->waitsAt == progress;
  if (waiting != hosts || isBroken)
    return;
  std::string text = "nothing can go on:";
  for (auto &[rank, device] : devices)
    for (cudaStream_t stream : device->streams)
      if (!stream->work.empty())
        text += "\n  " + stream->work.front()->what + " waits";
  report(text + endsApart());
}

bool match(World &world, std::pair<int, int> pair) {
  auto &sends = world.sends[pair], &receives = world.receives[pair];
  bool any = false;
  while (!sends.empty() && !receives.empty()) {
    End &from = *sends.front(), &to = *receives.front();
    if (isBroken)
      return false;
    if (from.size != to.size)
      report(from.by->what + " sends " + std::to_string(from.size) +
             " bytes, " + to.by->what + " receives " + std::to_string(to.size));
    else
      std::memcpy(to.data, from.data, from.size);
    from.met = to.met = any = true;
    sends.pop_front();
    receives.pop_front();
  }
  return any;
}

bool gather(World &world) {
  for (int rank = 0; rank != world.size; ++rank)
    if (world.gathers[rank].empty())
      return false;
  End &first = *world.gathers[0].front();
  for (int to = 0; to != world.size; ++to) {
    End &into = *world.gathers[to].front();
    if (into.size != first.size)
      report(first.by->what + " gathers " + std::to_string(first.size) +
             " bytes, " + into.by->what + " " + std::to_string(into.size));
    else
      for (int from = 0; from != world.size; ++from)
        std::memcpy(into.into + size_t(from) * into.size,
                    world.gathers[from].front()->data, into.size);
  }
  for (int rank = 0; rank != world.size; ++rank) {
    world.gathers[rank].front()->met = true;
    world.gathers[rank].pop_front();
  }
  return true;
}

void touchEnd(Device &device, const End &end, int ranks) {
  access(device, end.by, end.data, end.size, end.kind == End::Recv);
  if (end.kind == End::Gather)
    access(device, end.by, end.into, end.size * size_t(ranks), true);
}

/// Issues the ends of a group that are of one communicator and stream.
void launch(ncclComm_t comm, cudaStream_t stream, std::vector<End> given) {
  auto ends = std::make_shared<std::vector<End>>(std::move(given));
  std::string what;
  for (const End &end : *ends)
    what +=
        (what.empty() ? "" : ", ") +
        (end.kind == End::Gather ? std::string("ncclAllGather")
         : end.kind == End::Send ? "ncclSend to " + std::to_string(end.peer)
                                 : "ncclRecv from " + std::to_string(end.peer));
  what += " of communicator " + std::to_string(comm->world->number);
  auto run = [comm, ends, device = here, posted = false]() mutable {
    World &world = *comm->world;
    for (End &end : *ends) {
      if (!posted)
        touchEnd(*device, end, world.size);
      auto pair = end.kind == End::Send ? std::pair(comm->rank, end.peer)
                                        : std::pair(end.peer, comm->rank);
      if (!posted && end.kind != End::Gather)
        (end.kind == End::Send ? world.sends : world.receives)[pair].push_back(
            &end);
      else if (!posted)
        world.gathers[comm->rank].push_back(&end);
      progress += end.kind == End::Gather ? gather(world) : match(world, pair);
    }
    posted = true;
    return comm->aborted || std::all_of(ends->begin(), ends->end(),
                                        [](const End &end) { return end.met; });
  };
  OperationPtr operation = issue(*stream, what, run);
  if (comm->last && !operation->isBehind(*comm->last))
    report(operation->what + " and " + comm->last->what +
           " are of one communicator, and nothing orders them");
  comm->last = operation;
  for (End &end : *ends)
    end.by = operation;
}

ncclResult_t post(ncclComm_t comm, cudaStream_t stream, End end) {
  std::lock_guard lock(mutex);
  if (isBroken)
    return ncclInternalError;
  if (end.peer < 0 || end.peer >= comm->world->size) {
    report(describe("a message with rank " + std::to_string(end.peer) +
                        ", which communicator " +
                        std::to_string(comm->world->number) + " has not",
                    nameOf(*stream)));
    return ncclInvalidArgument;
  }
  ncclGroupStart();
  here->group.push_back({comm, {stream, end}});
  return ncclGroupEnd();
}

cudaError_t status() { return isBroken ? cudaErrorLaunchFailure : cudaSuccess; }

} // namespace

void model::beginRank(int rank, int ranks) {
  std::unique_lock lock(mutex);
  here = (devices[rank] = std::make_unique<Device>()).get();
  here->rank = rank;
  ++here->clock[0];
  ++hosts;
  allHere.notify_all();
  allHere.wait(lock, [&] { return int(devices.size()) >= ranks; });
}
void model::endRank() {
  std::lock_guard lock(mutex);
  if (here->groupDepth != 0)
    report("rank " + std::to_string(here->rank) +
           " ends while a group is open, begun " + here->groupPlace);
  for (const auto &[data, memory] : here->memory)
    if (!memory.freedBy)
      report("nobody frees " + memory.madeBy->what);
  for (cudaStream_t stream : here->streams)
    if (!stream->isGone)
      report("nobody destroys " + nameOf(*stream));
  --hosts;
  ++progress;
}
void model::setPlace(std::string place) { here->place = std::move(place); }
void model::touch(const void *data, size_t size, bool writes) {
  std::lock_guard lock(mutex);
  // The running operation is at the head of its stream.
  for (auto &[rank, device] : devices)
    for (cudaStream_t stream : device->streams)
      if (!stream->work.empty() && stream->work.front().get() == running)
        return access(*device, stream->work.front(), data, size, writes);
}
std::vector<std::string> model::takeReports() {
  std::lock_guard lock(mutex);
  for (auto &[rank, device] : devices)
    for (cudaStream_t stream : device->streams)
      delete stream;
  devices.clear();
  worlds.clear();
  isBroken = false;
  hosts = 0;
  return std::exchange(reports, {});
}
void model::dropWait(int rank, int number) {
  droppedRank = rank, waitsToDropped = number;
}

extern "C" {

const char *cudaGetErrorString(cudaError_t) {
  return "the model has found a fault";
}
const char *ncclGetErrorString(ncclResult_t) {
  return "the model has found a fault";
}

cudaError_t cudaMalloc(void **data, size_t size) {
  std::lock_guard lock(mutex);
  allocate(*here, data, size, byHost("cudaMalloc"));
  return status();
}
cudaError_t cudaFree(void *data) {
  std::lock_guard lock(mutex);
  pump();
  release(*here, byHost("cudaFree"), data);
  return status();
}
cudaError_t cudaMallocAsync(void **data, size_t size, cudaStream_t stream) {
  std::lock_guard lock(mutex);
  allocate(*here, data, size,
           issue(*stream, "cudaMallocAsync", [] { return true; }));
  return status();
}
cudaError_t cudaFreeAsync(void *data, cudaStream_t stream) {
  std::lock_guard lock(mutex);
  OperationPtr operation = issue(*stream, "cudaFreeAsync", nullptr);
  operation->run = [data, device = here, self = operation.get()] {
    release(*device, self->shared_from_this(), data);
    return true;
  };
  return status();
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
  std::lock_guard lock(mutex);
  *stream = new FakeStream{here, here->nextEntity++, here->clock, {}};
  here->streams.push_back(*stream);
  return status();
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::lock_guard lock(mutex);
  pump();
  if (!stream->work.empty())
    report(nameOf(*stream) + " is destroyed before " +
           stream->work.front()->what + " has ended");
  stream->isGone = true;
  return status();
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  std::unique_lock lock(mutex);
  refuseOpenGroup("cudaStreamSynchronize");
  while (pump(), !stream->work.empty() && !isBroken) {
    waitsHere();
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  here->waitsAt = ~uint64_t(0);
  here->clock.join(stream->clock);
  return status();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned) {
  std::lock_guard lock(mutex);
  if (here->rank == droppedRank && waitsToDropped-- == 0)
    return status();
  auto state = event->state;
  if (!state) {
    report(describe("a wait for an event that nobody has recorded",
                    nameOf(*stream)));
    return status();
  }
  stream->clock.join(state->clock);
  issue(*stream, "cudaStreamWaitEvent", [state] { return state->done; });
  return status();
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
  std::lock_guard lock(mutex);
  // What a group holds is launched when it is closed, behind the event.
  for (const auto &[comm, end] : here->group)
    if (end.first == stream)
      refuseOpenGroup("cudaEventRecord");
  auto state = event->state = std::make_shared<FakeEvent::State>();
  state->clock = issue(*stream, "cudaEventRecord", [state] {
                   return state->done = true;
                 })->clock;
  return status();
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  std::lock_guard lock(mutex);
  refuseOpenGroup("cudaEventQuery");
  if (!event->state)
    report("rank " + std::to_string(here->rank) +
           " asks for an event that nobody has recorded");
  pump();
  if (isBroken)
    return status();
  if (!event->state->done) {
    waitsHere();
    return isBroken ? status() : cudaErrorNotReady;
  }
  here->waitsAt = ~uint64_t(0);
  here->clock.join(event->state->clock);
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                               void *data) {
  std::lock_guard lock(mutex);
  auto operation = issue(*stream, "a kernel", nullptr);
  operation->run = [function, data, self = operation.get()] {
    running = self;
    function(data);
    running = nullptr;
    return true;
  };
  return status();
}
/// Host memory is pageable: a copy to it is waited for.
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  std::lock_guard lock(mutex);
  bool toDevice = kind == cudaMemcpyHostToDevice;
  std::string bytes(toDevice ? static_cast<const char *>(from) : "",
                    toDevice ? size : 0);
  OperationPtr operation = issue(*stream, "cudaMemcpyAsync", nullptr);
  operation->run = [=, device = here, self = operation.get()] {
    access(*device, self->shared_from_this(), toDevice ? to : from, size,
           toDevice);
    if (!isBroken)
      std::memcpy(to, toDevice ? bytes.data() : from, size);
    return true;
  };
  return toDevice || isBroken ? status() : cudaStreamSynchronize(stream);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  std::lock_guard lock(mutex);
  worlds.push_back(std::make_unique<World>());
  worlds.back()->number = int(worlds.size());
  std::snprintf(id->internal, sizeof id->internal, "%zu", worlds.size() - 1);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id,
                                    int rank, ncclConfig_t *) {
  std::lock_guard lock(mutex);
  World *world = worlds[size_t(std::atoi(id.internal))].get();
  world->size = size;
  *comm = new FakeComm{world, rank, nullptr};
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  std::lock_guard lock(mutex);
  comm->aborted = true; // What is under way may still look at it.
  here->groupDepth = 0;
  here->group.clear();
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *result) {
  std::lock_guard lock(mutex);
  *result = isBroken ? ncclInternalError : ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(ncclComm_t comm, int *size) {
  *size = comm->world->size;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank) {
  *rank = comm->rank;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  std::lock_guard lock(mutex);
  if (here->groupDepth++ == 0)
    here->groupPlace =
        describe("a group", "rank " + std::to_string(here->rank));
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  std::lock_guard lock(mutex);
  if (here->groupDepth == 0) {
    report(describe("a group is closed that nobody began",
                    "rank " + std::to_string(here->rank)));
    return ncclInvalidArgument;
  }
  if (--here->groupDepth != 0)
    return ncclSuccess;
  std::map<ncclComm_t, std::map<cudaStream_t, std::vector<End>>> launches;
  std::vector<ncclComm_t> order;
  for (auto &[comm, end] : std::exchange(here->group, {})) {
    if (!launches.contains(comm))
      order.push_back(comm);
    launches[comm][end.first].push_back(end.second);
  }
  for (ncclComm_t comm : order) {
    if (launches[comm].size() > 1)
      report(describe("a group puts one communicator on several streams",
                      "rank " + std::to_string(here->rank)));
    for (auto &[stream, ends] : launches[comm])
      launch(comm, stream, std::move(ends));
  }
  return isBroken ? ncclInternalError : ncclSuccess;
}
ncclResult_t ncclSend(const void *data, size_t size, ncclDataType_t, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return post(comm, stream,
              {End::Send, peer, static_cast<char *>(const_cast<void *>(data)),
               nullptr, size, nullptr});
}
ncclResult_t ncclRecv(void *data, size_t size, ncclDataType_t, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return post(
      comm, stream,
      {End::Recv, peer, static_cast<char *>(data), nullptr, size, nullptr});
}
ncclResult_t ncclAllGather(const void *own, void *all, size_t size,
                           ncclDataType_t, ncclComm_t comm,
                           cudaStream_t stream) {
  return post(comm, stream,
              {End::Gather, 0, static_cast<char *>(const_cast<void *>(own)),
               static_cast<char *>(all), size, nullptr});
}

} // extern "C"
