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
//
// Ranks meet when they make a communicator, and in the first message of two and
// the first collective of all. A communicator that blocks holds its host until
// then. One that does not is in progress from each call on, until the host asks
// ncclCommGetAsyncError and the others are there; what was called takes effect
// then, and no earlier call may use the communicator. An abort ends when
// nothing runs on the device any more, at the end of its group if it is in one.
//
// A stream that is captured notes its calls; a launch of the graph makes them
// again, on streams that stand for those. What CUDA forbids in a capture, and
// what it allows but no capture means, is reported.
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

struct FakeGraph;

namespace {

/// Of one rank: how far the host and each stream were.
struct VectorClock {
  std::vector<uint64_t> at;

  uint64_t &operator[](size_t clockIndex) {
    if (at.size() <= clockIndex)
      at.resize(clockIndex + 1);
    return at[clockIndex];
  }
  bool covers(size_t clockIndex, uint64_t time) const {
    return clockIndex < at.size() && at[clockIndex] >= time;
  }
  void join(const VectorClock &other) {
    for (size_t i = 0; i != other.at.size(); ++i)
      (*this)[i] = std::max((*this)[i], other.at[i]);
  }
};

/// What was issued, or done by the host.
struct Operation : std::enable_shared_from_this<Operation> {
  std::string what;
  size_t clockIndex = 0;
  uint64_t time = 0;
  VectorClock clock;
  std::function<bool()> run;              ///< False when it cannot end yet.
  model::TracedOperation *note = nullptr; ///< Where its rank is traced.

  bool happensAfter(const Operation &other) const {
    return clock.covers(other.clockIndex, other.time);
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
  bool isPinned = false;        ///< Of the host.
  OperationPtr madeBy, freedBy; ///< Null before a graph has run.
  std::vector<Access> accesses; ///< Those that later ones can conflict with.
};

struct World;
/// One end of a message, or of a collective.
struct End {
  enum Kind { Send, Recv, Gather, Scatter } kind;
  int peer;
  char *data, *into;
  size_t size;
  OperationPtr by;
  bool met = false;
};

struct Device {
  int rank = 0;
  VectorClock clock; ///< Of the host.
  std::vector<cudaStream_t> streams;
  size_t nextEntity = 1;
  std::map<const char *, Allocation> memory;
  uint64_t waitsAt = ~uint64_t(0); ///< The progress that it has seen.
  std::string place;
  FakeGraph *capture = nullptr; ///< That its host has begun.
  int waits = 0;                ///< cudaStreamWaitEvent so far.
  std::deque<model::TracedOperation> *notes = nullptr;
  model::TracedOperation *hostNote = nullptr; ///< What the host has seen last.
  std::string hostWaits; ///< For what other ranks must do, or nothing.
};

/// Of a thread.
struct Group {
  int depth = 0;
  std::string place;
  std::vector<std::pair<ncclComm_t, std::pair<cudaStream_t, End>>> posts;
  std::vector<Device *> aborted;
};

std::recursive_mutex mutex;
std::condition_variable_any allHere;
std::map<int, std::unique_ptr<Device>> devices;
std::vector<std::string> reports;
std::vector<std::unique_ptr<World>> worlds;
uint64_t progress = 0;
int droppedRank = -1, droppedWait = 0;
int tracedRank = -1;
std::deque<model::TracedOperation> trace;
std::map<int, int> waitsOfRanks;
int hosts = 0; ///< Ranks that have not ended.
bool isBroken = false;
bool toleratesFaults = false;
thread_local Device *here = nullptr;
thread_local Group group;
thread_local bool cudaFails = false, holdsMessages = false;
thread_local Operation *running = nullptr;

void report(const std::string &text) {
  if (toleratesFaults)
    return;
  if (!isBroken)
    reports.push_back(text);
  isBroken = true;
}

} // namespace

struct FakeStream {
  Device *device;
  size_t clockIndex;
  VectorClock clock;
  std::deque<OperationPtr> work{};
  bool isGone = false, isStandIn = false;
  FakeGraph *capture = nullptr;
  VectorClock captured{}; ///< How far each stream of the capture was.
  model::TracedOperation *last = nullptr;
};
struct FakeEvent {
  struct State {
    VectorClock clock;
    bool done = false;
    model::TracedOperation *note = nullptr;
    FakeGraph *capture = nullptr;
    /// Of a capture: what its record has become in the latest launch.
    std::shared_ptr<State> latest;
  };
  std::shared_ptr<State> state;
};
/// The calls of a capture, in their order.
struct FakeGraph {
  struct Call {
    cudaStream_t stream;
    std::string place;
    std::function<void(FakeStream &)> make;
  };
  cudaStream_t origin;
  std::vector<cudaStream_t> streams;
  std::vector<Call> calls;
};
struct FakeComm {
  World *world;
  int rank;
  Device *device;
  bool blocks;
  OperationPtr last{};
  bool aborted = false;
  int numSplits = 0;
  ncclResult_t error = ncclSuccess;
  std::string inProgress{};       ///< The call.
  std::function<bool()> hasMet{}; ///< Whether it has ended; then it takes
                                  ///< effect.
};

namespace {

struct World {
  int number, size;
  std::set<int> members; ///< The ranks that have called for it.
  /// By sender and receiver: the first message's ends; and the ranks of the
  /// first collective.
  std::map<std::pair<int, int>, std::map<End::Kind, std::string>> connected;
  std::set<int> gathered;
  /// By the number of a split: the colours of ranks, and what becomes of them.
  std::map<int, std::map<int, int>> colours;
  std::map<std::pair<int, int>, World *> parts;
  std::map<std::pair<int, int>, std::deque<End *>> sends, receives;
  std::map<int, std::deque<End *>> gathers;
};

World *newWorld() {
  worlds.push_back(std::make_unique<World>());
  worlds.back()->number = int(worlds.size());
  return worlds.back().get();
}

std::string nameOf(const FakeStream &stream) {
  return "stream " + std::to_string(stream.clockIndex) + " of rank " +
         std::to_string(stream.device->rank);
}

std::string describe(const std::string &what, const std::string &where) {
  return what + " on " + where +
         (here->place.empty() ? "" : " (" + here->place + ")");
}

void refuseOpenGroup(const char *what) {
  if (group.depth != 0)
    report(std::string(what) + " while a group is open, begun " + group.place);
}

/// What CUDA forbids the host while it captures, or what a graph cannot hold.
bool refuseCapture(const char *what) {
  if (here->capture)
    report(describe(what, "the host of rank " + std::to_string(here->rank)) +
           " while a stream is captured");
  return here->capture;
}

/// What a call needs to be made again.
using Run = std::function<bool(const OperationPtr &)>;

void note(const OperationPtr &operation,
          std::initializer_list<model::TracedOperation *> predecessors) {
  if (!here->notes)
    return;
  operation->note = &here->notes->emplace_back();
  operation->note->what = operation->what;
  for (model::TracedOperation *other : predecessors)
    if (other)
      operation->note->predecessors.push_back(other);
}

OperationPtr issue(FakeStream &stream, const std::string &what, Run run) {
  if (stream.isGone)
    report(describe(what, nameOf(stream)) + ", which has been destroyed");
  if (stream.device != here)
    report(describe(what, nameOf(stream)) + " from rank " +
           std::to_string(here->rank));
  auto operation = std::make_shared<Operation>();
  operation->what = describe(what, nameOf(stream));
  operation->clockIndex = stream.clockIndex;
  stream.clock.join(here->clock);
  operation->time = ++stream.clock[stream.clockIndex];
  operation->clock = stream.clock;
  operation->run = [run = std::move(run), self = operation.get()] {
    return run(self->shared_from_this());
  };
  note(operation, {stream.last, here->hostNote});
  stream.last = operation->note ? operation->note : stream.last;
  stream.work.push_back(operation);
  return operation;
}

/// Makes a call on a stream, or notes it where the stream is captured. Events
/// are no work, so nobody need join a stream that has had no more.
void issueOrCapture(FakeStream &stream, std::function<void(FakeStream &)> make,
                    bool runsOnStage = true) {
  if (!stream.capture)
    return make(stream);
  stream.captured[stream.clockIndex] += runsOnStage;
  stream.capture->calls.push_back({&stream, here->place, std::move(make)});
}
void issueOrCapture(FakeStream &stream, const std::string &what, Run run) {
  issueOrCapture(stream, [what, run](FakeStream &on) { issue(on, what, run); });
}

OperationPtr hostOperation(const std::string &what) {
  auto operation = std::make_shared<Operation>();
  operation->what =
      describe(what, "the host of rank " + std::to_string(here->rank));
  operation->time = ++here->clock[0];
  operation->clock = here->clock;
  note(operation, {here->hostNote});
  here->hostNote = operation->note ? operation->note : here->hostNote;
  return operation;
}
/// The host has seen that something has ended.
void hostObserves(const VectorClock &clock, model::TracedOperation *ended) {
  here->clock.join(clock);
  if (!here->notes)
    return;
  OperationPtr seen = hostOperation("a wait");
  if (ended)
    seen->note->predecessors.push_back(ended);
}

cudaStream_t newStream() {
  return here->streams.emplace_back(
      new FakeStream{here, here->nextEntity++, here->clock});
}
void joinCapture(FakeStream &stream, FakeGraph *graph) {
  stream.capture = graph;
  stream.captured = {};
  graph->streams.push_back(&stream);
}
void recordEvent(FakeStream &stream,
                 const std::shared_ptr<FakeEvent::State> &state) {
  OperationPtr operation =
      issue(stream, "cudaEventRecord",
            [state](const OperationPtr &) { return state->done = true; });
  state->clock = operation->clock;
  state->note = operation->note;
}
void awaitEvent(FakeStream &stream,
                const std::shared_ptr<FakeEvent::State> &state) {
  stream.clock.join(state->clock);
  OperationPtr operation =
      issue(stream, "cudaStreamWaitEvent",
            [state](const OperationPtr &) { return state->done; });
  if (operation->note && state->note)
    operation->note->predecessors.push_back(state->note);
}
void waitStream(FakeStream &later, FakeStream &earlier) {
  auto state = std::make_shared<FakeEvent::State>();
  recordEvent(earlier, state);
  awaitEvent(later, state);
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
  if (by->note)
    by->note->touched.push_back({at, at + size, writes});
  if (!memory->madeBy)
    return report(by->what + " uses memory of a graph that has not run");
  if (memory->freedBy && !memory->freedBy->happensAfter(*by))
    return report(by->what +
                  " uses memory that may be free: " + memory->freedBy->what);
  if (!by->happensAfter(*memory->madeBy))
    return report(by->what +
                  " may come before its memory: " + memory->madeBy->what);
  size_t begin = size_t(at - memory->bytes.data()), end = begin + size;
  bool isWritten = writes;
  for (const Access &other : memory->accesses) {
    if (other.begin >= end || begin >= other.end || other.by == by)
      continue;
    isWritten |= other.writes && by->happensAfter(*other.by);
    if ((writes || other.writes) && !by->happensAfter(*other.by) &&
        !other.by->happensAfter(*by))
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
           by->happensAfter(*other.by);
  });
  memory->accesses.push_back({begin, end, writes, by});
}

void release(Device &device, const OperationPtr &by, void *data) {
  auto found = device.memory.find(static_cast<char *>(data));
  if (found == device.memory.end())
    return report(by->what + " of what is no device memory of the rank");
  Allocation &memory = found->second;
  if (by->note)
    by->note->touched.push_back(
        {found->first, found->first + memory.bytes.size(), true, true});
  if (memory.freedBy)
    return report(by->what + " of what is free: " + memory.freedBy->what);
  if (!by->happensAfter(*memory.madeBy))
    return report(by->what +
                  " may come before its memory: " + memory.madeBy->what);
  for (const Access &other : memory.accesses)
    if (!by->happensAfter(*other.by))
      return report(by->what + " frees what " + other.by->what +
                    " may still use");
  memory.freedBy = by;
}

/// Memory whose time has not begun.
void *reserve(Device &device, size_t size, bool isPinned = false) {
  Allocation made;
  made.bytes.assign(std::max<size_t>(size, 1), char(0xAB));
  made.isPinned = isPinned;
  char *data = made.bytes.data();
  device.memory[data] = std::move(made);
  return data;
}
/// It begins, or begins again with each launch of its graph.
void allocate(Device &device, void *data, const OperationPtr &by) {
  Allocation &memory = device.memory.at(static_cast<char *>(data));
  if (memory.madeBy && (!memory.freedBy || !by->happensAfter(*memory.freedBy)))
    return report(by->what + " runs again before its memory is free");
  if (by->note)
    by->note->touched.push_back({memory.bytes.data(),
                                 memory.bytes.data() + memory.bytes.size(),
                                 true, true});
  memory.madeBy = by;
  memory.freedBy = nullptr;
  memory.accesses.clear();
  std::fill(memory.bytes.begin(), memory.bytes.end(), char(0xAB));
}

/// Runs what can run.
void runReady() {
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
std::string describeMismatch() {
  for (auto &world : worlds)
    for (auto &[pair, sends] : world->sends)
      for (auto &other : worlds)
        if (other != world && !sends.empty())
          if (auto found = other->receives.find(pair);
              found != other->receives.end() && !found->second.empty())
            return "\n  the two ends are on different communicators: " +
                   sends.front()->by->what + " and " +
                   found->second.front()->by->what;
  for (auto &world : worlds)
    for (auto &[pair, ends] : world->connected)
      for (auto &other : worlds)
        if (auto found = other->connected.find(pair);
            ends.size() == 1 && ends.contains(End::Send) &&
            found != other->connected.end() && found->second.size() == 1 &&
            found->second.contains(End::Recv))
          return "\n  the two ends are on different communicators: " +
                 ends[End::Send] + " and " + found->second[End::Recv];
  return "";
}

/// The host of this rank cannot go on: when none can, nothing ever will.
void detectDeadlock() {
  here->waitsAt = progress;
  int waiting = 0;
  for (auto &[rank, device] : devices)
    waiting += device->waitsAt == progress;
  if (waiting != hosts || isBroken || toleratesFaults)
    return;
  std::string text = "nothing can go on:";
  for (auto &[rank, device] : devices) {
    if (!device->hostWaits.empty())
      text += "\n  " + device->hostWaits + " waits for other ranks";
    for (cudaStream_t stream : device->streams)
      if (!stream->work.empty())
        text += "\n  " + stream->work.front()->what + " waits";
  }
  report(text + describeMismatch());
}

/// A call on a communicator that may be in progress.
void refuseInProgress(const FakeComm &comm, const std::string &what) {
  if (comm.hasMet)
    report(what + " of communicator " + std::to_string(comm.world->number) +
           " while " + comm.inProgress + " is in progress");
}

/// Ends a call on a communicator when `hasMet` is true, which is asked again
/// and again: in this call if the communicator blocks, or else when somebody
/// asks for its state.
ncclResult_t meet(FakeComm &comm, const std::string &what,
                  std::function<bool()> hasMet) {
  std::unique_lock lock(mutex);
  ++progress;
  std::string call =
      describe(what + " of communicator " + std::to_string(comm.world->number),
               "the host of rank " + std::to_string(here->rank));
  if (!comm.blocks) {
    comm.inProgress = call;
    comm.hasMet = std::move(hasMet);
    return ncclInProgress;
  }
  here->hostWaits = call;
  while (runReady(),
         !isBroken && !comm.aborted && (holdsMessages || !hasMet())) {
    detectDeadlock();
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  here->hostWaits.clear();
  here->waitsAt = ~uint64_t(0);
  return isBroken || comm.aborted ? ncclInternalError : ncclSuccess;
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

/// Does the collective at the head of all ranks' queues.
bool gather(World &world) {
  std::vector<End *> ends;
  for (int rank = 0; rank != world.size; ++rank) {
    if (world.gathers[rank].empty())
      return false;
    ends.push_back(world.gathers[rank].front());
  }
  End &first = *ends[0];
  for (End *end : ends)
    if (end->kind != first.kind)
      report(first.by->what + " meets " + end->by->what);
    else if (end->size != first.size)
      report(first.by->what + " is of " + std::to_string(first.size) +
             " bytes, " + end->by->what + " of " + std::to_string(end->size));
  for (size_t to = 0; to != ends.size() && !isBroken; ++to)
    for (size_t from = 0; from != ends.size(); ++from)
      if (first.kind == End::Gather) {
        std::memcpy(ends[to]->into + from * first.size, ends[from]->data,
                    first.size);
      } else {
        auto *sum = reinterpret_cast<double *>(ends[to]->into);
        auto *part = reinterpret_cast<const double *>(ends[from]->data +
                                                      to * first.size);
        for (size_t i = 0; i != first.size / sizeof(double); ++i)
          sum[i] = from == 0 ? part[i] : sum[i] + part[i];
      }
  for (int rank = 0; rank != world.size; ++rank) {
    ends[size_t(rank)]->met = true;
    world.gathers[rank].pop_front();
  }
  return true;
}

void touchEnd(Device &device, const End &end, int ranks) {
  size_t all = end.size * size_t(ranks);
  access(device, end.by, end.data, end.kind == End::Scatter ? all : end.size,
         end.kind == End::Recv);
  if (end.kind >= End::Gather)
    access(device, end.by, end.into, end.kind == End::Gather ? all : end.size,
           true);
}

std::string nameOf(const End &end) {
  switch (end.kind) {
  case End::Send:
    return "ncclSend to " + std::to_string(end.peer);
  case End::Recv:
    return "ncclRecv from " + std::to_string(end.peer);
  case End::Gather:
    return "ncclAllGather";
  default:
    return "ncclReduceScatter";
  }
}

std::pair<int, int> pairOf(const FakeComm &comm, const End &end) {
  return end.kind == End::Send ? std::pair(comm.rank, end.peer)
                               : std::pair(end.peer, comm.rank);
}

/// Nobody meets the ends of an operation that was aborted.
void withdraw(World &world, const std::vector<End> &ends) {
  auto isOne = [&](const End *end) {
    return std::any_of(ends.begin(), ends.end(),
                       [&](const End &own) { return &own == end; });
  };
  for (auto *byPair : {&world.sends, &world.receives})
    for (auto &[pair, queue] : *byPair)
      std::erase_if(queue, isOne);
  for (auto &[rank, queue] : world.gathers)
    std::erase_if(queue, isOne);
}

/// Issues the ends of a group that are of one communicator and stream.
void launch(ncclComm_t comm, FakeStream &stream,
            const std::vector<End> &given) {
  auto ends = std::make_shared<std::vector<End>>(given);
  std::string what;
  for (const End &end : *ends)
    what += (what.empty() ? "" : ", ") + nameOf(end);
  what += " of communicator " + std::to_string(comm->world->number);
  auto run = [comm, ends, device = here,
              posted = false](const OperationPtr &) mutable {
    World &world = *comm->world;
    for (End &end : *ends) {
      bool isMessage = end.kind < End::Gather;
      if (!posted)
        touchEnd(*device, end, world.size);
      auto pair = pairOf(*comm, end);
      if (!posted && isMessage)
        (end.kind == End::Send ? world.sends : world.receives)[pair].push_back(
            &end);
      else if (!posted)
        world.gathers[comm->rank].push_back(&end);
      progress += isMessage ? match(world, pair) : gather(world);
    }
    posted = true;
    if (comm->aborted)
      withdraw(world, *ends);
    return comm->aborted || std::all_of(ends->begin(), ends->end(),
                                        [](const End &end) { return end.met; });
  };
  OperationPtr operation = issue(stream, what, run);
  if (operation->note)
    operation->note->comm = comm;
  if (comm->last && !operation->happensAfter(*comm->last))
    report(operation->what + " and " + comm->last->what +
           " are of one communicator, and nothing orders them");
  comm->last = operation;
  for (End &end : *ends)
    end.by = operation;
}

ncclResult_t post(ncclComm_t comm, cudaStream_t stream, End end) {
  std::unique_lock lock(mutex);
  if (isBroken)
    return ncclInternalError;
  if (end.peer < 0 || end.peer >= comm->world->size) {
    report(describe("a message with rank " + std::to_string(end.peer) +
                        ", which communicator " +
                        std::to_string(comm->world->number) + " has not",
                    nameOf(*stream)));
    return ncclInvalidArgument;
  }
  refuseInProgress(*comm, describe(nameOf(end), nameOf(*stream)));
  lock.unlock();
  ncclGroupStart();
  group.posts.push_back({comm, {stream, end}});
  return ncclGroupEnd();
}

/// Notes the ends that a rank has; whether those of the others are there, too.
void connect(FakeComm &comm, const End &end, const std::string &what) {
  if (end.kind >= End::Gather)
    comm.world->gathered.insert(comm.rank);
  else
    comm.world->connected[pairOf(comm, end)].try_emplace(end.kind, what);
}
bool isConnected(FakeComm &comm, const End &end) {
  World &world = *comm.world;
  return end.kind >= End::Gather
             ? int(world.gathered.size()) == world.size
             : world.connected[pairOf(comm, end)].size() == 2;
}

/// Waits until nothing runs on the devices, or they are gone.
void awaitIdle(const std::vector<Device *> &which) {
  std::unique_lock lock(mutex);
  auto isBusy = [&](const auto &entry) {
    Device *device = entry.second.get();
    return std::find(which.begin(), which.end(), device) != which.end() &&
           !std::all_of(
               device->streams.begin(), device->streams.end(),
               [](cudaStream_t stream) { return stream->work.empty(); });
  };
  while (runReady(),
         !isBroken && std::any_of(devices.begin(), devices.end(), isBusy)) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
}

cudaError_t status() { return isBroken ? cudaErrorLaunchFailure : cudaSuccess; }

} // namespace

void model::attachRank(int rank, int ranks) {
  std::unique_lock lock(mutex);
  here = (devices[rank] = std::make_unique<Device>()).get();
  here->rank = rank;
  here->notes = rank == tracedRank ? &trace : nullptr;
  ++here->clock[0];
  ++hosts;
  allHere.notify_all();
  allHere.wait(lock, [&] { return int(devices.size()) >= ranks; });
}
void model::detachRank() {
  std::lock_guard lock(mutex);
  if (group.depth != 0)
    report("rank " + std::to_string(here->rank) +
           " ends while a group is open, begun " + group.place);
  if (here->capture)
    report("rank " + std::to_string(here->rank) + " ends in a capture");
  waitsOfRanks[here->rank] = here->waits;
  for (const auto &[data, memory] : here->memory)
    if (memory.madeBy && !memory.freedBy)
      report("nobody frees " + memory.madeBy->what);
  for (cudaStream_t stream : here->streams)
    if (!stream->isGone && !stream->isStandIn)
      report("nobody destroys " + nameOf(*stream));
  --hosts;
  ++progress;
}
void model::setPlace(std::string place) { here->place = std::move(place); }
void model::recordAccess(const void *data, size_t size, bool writes) {
  std::lock_guard lock(mutex);
  if (!running)
    return access(*here, hostOperation(writes ? "a write" : "a read"), data,
                  size, writes);
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
  droppedRank = rank, droppedWait = number;
}
int model::numWaits(int rank) { return waitsOfRanks[rank]; }
void model::traceRank(int rank) {
  tracedRank = rank;
  trace.clear();
}
const std::deque<model::TracedOperation> &model::traced() { return trace; }
void model::tolerateFaults() { toleratesFaults = true; }
void model::breakComm(ncclComm_t comm) {
  std::lock_guard lock(mutex);
  comm->error = ncclRemoteError;
}
void model::breakCuda() { cudaFails = true; }
void model::holdMessages() { holdsMessages = true; }
void model::kernel(cudaStream_t stream, std::function<bool()> body) {
  std::lock_guard lock(mutex);
  issueOrCapture(*stream, "a kernel", [body](const OperationPtr &self) {
    running = self.get();
    bool ended = body();
    running = nullptr;
    return ended;
  });
}

extern "C" {

const char *cudaGetErrorString(cudaError_t) {
  return cudaFails ? "a CUDA error" : "the model has found a fault";
}
const char *ncclGetErrorString(ncclResult_t code) {
  return code == ncclRemoteError ? "remote process exited"
                                 : "the model has found a fault";
}

cudaError_t cudaMalloc(void **data, size_t size) {
  std::lock_guard lock(mutex);
  refuseCapture("cudaMalloc");
  allocate(*here, *data = reserve(*here, size), hostOperation("cudaMalloc"));
  return status();
}
cudaError_t cudaFree(void *data) {
  std::lock_guard lock(mutex);
  refuseCapture("cudaFree");
  runReady();
  release(*here, hostOperation("cudaFree"), data);
  return status();
}
cudaError_t cudaMallocHost(void **data, size_t size) {
  std::lock_guard lock(mutex);
  refuseCapture("cudaMallocHost");
  allocate(*here, *data = reserve(*here, size, true),
           hostOperation("cudaMallocHost"));
  return status();
}
cudaError_t cudaFreeHost(void *data) {
  std::lock_guard lock(mutex);
  refuseCapture("cudaFreeHost");
  runReady();
  release(*here, hostOperation("cudaFreeHost"), data);
  return status();
}
cudaError_t cudaMallocAsync(void **data, size_t size, cudaStream_t stream) {
  std::lock_guard lock(mutex);
  void *memory = *data = reserve(*here, size);
  auto ended = [](const OperationPtr &) { return true; };
  // In a launch its time comes when that of the launch before is over.
  if (stream->capture)
    issueOrCapture(*stream, "cudaMallocAsync",
                   [memory, device = here](const OperationPtr &self) {
                     allocate(*device, memory, self);
                     return true;
                   });
  else
    allocate(*here, memory, issue(*stream, "cudaMallocAsync", ended));
  return status();
}
cudaError_t cudaFreeAsync(void *data, cudaStream_t stream) {
  std::lock_guard lock(mutex);
  issueOrCapture(*stream, "cudaFreeAsync",
                 [data, device = here](const OperationPtr &self) {
                   release(*device, self, data);
                   return true;
                 });
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
  *stream = newStream();
  return status();
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  std::lock_guard lock(mutex);
  if (stream->capture)
    report(nameOf(*stream) + " is destroyed while it is captured");
  runReady();
  if (!stream->work.empty())
    report(nameOf(*stream) + " is destroyed before " +
           stream->work.front()->what + " has ended");
  stream->isGone = true;
  return status();
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  std::lock_guard lock(mutex);
  refuseOpenGroup("cudaStreamBeginCapture");
  if (refuseCapture("cudaStreamBeginCapture"))
    return status();
  here->capture = new FakeGraph{stream, {}, {}};
  joinCapture(*stream, here->capture);
  return status();
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  std::lock_guard lock(mutex);
  refuseOpenGroup("cudaStreamEndCapture");
  *graph = std::exchange(here->capture, nullptr);
  if (!*graph || (*graph)->origin != stream) {
    report(nameOf(*stream) + " ends a capture that did not begin there");
    return status();
  }
  for (cudaStream_t other : (*graph)->streams) {
    if (!stream->captured.covers(other->clockIndex,
                                 other->captured[other->clockIndex]))
      report("the capture of " + nameOf(*stream) + " ends, and " +
             nameOf(*other) + " has not joined it");
    other->capture = nullptr;
  }
  return status();
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph,
                                 unsigned long long) {
  *made = graph;
  return status();
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  std::lock_guard lock(mutex);
  refuseOpenGroup("cudaGraphLaunch");
  if (refuseCapture("cudaGraphLaunch"))
    return status();
  std::map<cudaStream_t, cudaStream_t> standIns;
  for (cudaStream_t captured : graph->streams)
    waitStream(*(standIns[captured] = newStream()), *stream);
  std::string place = std::exchange(here->place, "");
  for (const FakeGraph::Call &call : graph->calls) {
    here->place = call.place + ", in a graph";
    call.make(*standIns[call.stream]);
  }
  here->place = place;
  waitStream(*stream, *standIns[graph->origin]);
  for (auto [captured, standIn] : standIns)
    standIn->isStandIn = true;
  return status();
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  std::unique_lock lock(mutex);
  refuseOpenGroup("cudaStreamSynchronize");
  refuseCapture("cudaStreamSynchronize");
  while (runReady(), !stream->work.empty() && !isBroken) {
    detectDeadlock();
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  here->waitsAt = ~uint64_t(0);
  hostObserves(stream->clock, stream->last);
  return status();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned) {
  std::lock_guard lock(mutex);
  if (here->waits++ == droppedWait && here->rank == droppedRank)
    return status();
  auto state = event->state;
  if (!state) {
    report(describe("a wait for an event that nobody has recorded",
                    nameOf(*stream)));
    return status();
  }
  if (state->capture && state->capture == here->capture && !stream->capture)
    joinCapture(*stream, here->capture);
  if (state->capture != stream->capture) {
    report(describe("a wait across the border of a capture", nameOf(*stream)));
    return status();
  }
  stream->captured.join(state->clock);
  issueOrCapture(
      *stream,
      [state](FakeStream &on) {
        awaitEvent(on, state->latest ? state->latest : state);
      },
      false);
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
  for (const auto &[comm, end] : group.posts)
    if (end.first == stream)
      refuseOpenGroup("cudaEventRecord");
  auto state = event->state = std::make_shared<FakeEvent::State>();
  if (!stream->capture) {
    recordEvent(*stream, state);
    return status();
  }
  state->capture = stream->capture;
  issueOrCapture(
      *stream,
      [state](FakeStream &on) {
        recordEvent(on, state->latest = std::make_shared<FakeEvent::State>());
      },
      false);
  state->clock = stream->captured;
  return status();
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                               void *data) {
  std::lock_guard lock(mutex);
  issueOrCapture(*stream, "a host function", [=](const OperationPtr &self) {
    running = self.get();
    function(data);
    running = nullptr;
    return true;
  });
  return status();
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (cudaFails)
    return cudaErrorLaunchFailure;
  std::lock_guard lock(mutex);
  refuseOpenGroup("cudaEventQuery");
  refuseCapture("cudaEventQuery");
  if (!event->state)
    report("rank " + std::to_string(here->rank) +
           " asks for an event that nobody has recorded");
  runReady();
  if (isBroken)
    return status();
  if (!event->state->done) {
    detectDeadlock();
    return isBroken ? status() : cudaErrorNotReady;
  }
  here->waitsAt = ~uint64_t(0);
  hostObserves(event->state->clock, event->state->note);
  return cudaSuccess;
}
/// A copy from or to pageable memory is waited for.
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  std::unique_lock lock(mutex);
  bool toDevice = kind == cudaMemcpyHostToDevice;
  const char *host = static_cast<const char *>(toDevice ? from : to);
  Allocation *pinned = allocationAt(*here, host, size);
  bool isPinned = pinned && pinned->isPinned;
  if (!isPinned)
    refuseCapture("a copy of pageable memory");
  std::string bytes;
  if (toDevice && !isPinned)
    bytes.assign(host, size);
  issueOrCapture(
      *stream, "cudaMemcpyAsync", [=, device = here](const OperationPtr &self) {
        if (isPinned || !toDevice)
          access(*device, self, from, size, false);
        if (isPinned || toDevice)
          access(*device, self, to, size, true);
        if (!isBroken)
          std::memcpy(to, toDevice && !isPinned ? bytes.data() : from, size);
        return true;
      });
  lock.unlock();
  return toDevice || isPinned || isBroken ? status()
                                          : cudaStreamSynchronize(stream);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  std::lock_guard lock(mutex);
  newWorld();
  std::snprintf(id->internal, sizeof id->internal, "%zu", worlds.size() - 1);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id,
                                    int rank, ncclConfig_t *config) {
  std::unique_lock lock(mutex);
  World *world = worlds[size_t(std::atoi(id.internal))].get();
  world->size = size;
  world->members.insert(rank);
  *comm = new FakeComm{world, rank, here, config->blocking != 0};
  lock.unlock();
  return meet(**comm, "ncclCommInitRankConfig",
              [=] { return int(world->members.size()) == size; });
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int colour, int, ncclComm_t *made,
                           ncclConfig_t *config) {
  std::unique_lock lock(mutex);
  refuseCapture("ncclCommSplit");
  refuseOpenGroup("ncclCommSplit");
  refuseInProgress(*comm, "ncclCommSplit");
  World &world = *comm->world;
  int number = comm->numSplits++;
  std::map<int, int> &colours = world.colours[number];
  colours[comm->rank] = colour;
  *made = nullptr;
  lock.unlock();
  return meet(*comm, "ncclCommSplit",
              [=, &world, &colours, blocks = config->blocking != 0] {
                if (int(colours.size()) != world.size)
                  return false;
                if (colour == NCCL_SPLIT_NOCOLOR)
                  return true;
                World *&part = world.parts[{number, colour}];
                if (!part)
                  part = newWorld();
                int rank = 0, size = 0;
                for (auto [other, its] : colours) {
                  rank += its == colour && other < comm->rank;
                  size += its == colour;
                }
                part->size = size;
                *made = new FakeComm{part, rank, comm->device, blocks};
                return true;
              });
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  std::lock_guard lock(mutex);
  refuseInProgress(*comm, "ncclCommDestroy");
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  ncclGroupStart();
  {
    std::lock_guard lock(mutex);
    comm->aborted = true; // What is under way may still look at it.
  }
  group.aborted.push_back(comm->device);
  return ncclGroupEnd();
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
  std::lock_guard lock(mutex);
  // Only the host of the rank, not a thread beside it, brings it on.
  if (comm->hasMet && here == comm->device && !comm->aborted && !isBroken) {
    runReady();
    here->hostWaits = comm->inProgress;
    if (std::function<bool()> hasMet = comm->hasMet; hasMet()) {
      comm->hasMet = nullptr;
      here->hostWaits.clear();
      here->waitsAt = ~uint64_t(0);
    } else {
      detectDeadlock();
    }
  }
  *result = isBroken                     ? ncclInternalError
            : comm->error != ncclSuccess ? comm->error
            : comm->hasMet               ? ncclInProgress
                                         : ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(ncclComm_t comm, int *size) {
  std::lock_guard lock(mutex);
  refuseInProgress(*comm, "ncclCommCount");
  *size = comm->world->size;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank) {
  std::lock_guard lock(mutex);
  refuseInProgress(*comm, "ncclCommUserRank");
  *rank = comm->rank;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  std::lock_guard lock(mutex);
  if (group.depth++ == 0 && here)
    group.place = describe("a group", "rank " + std::to_string(here->rank));
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  std::unique_lock lock(mutex);
  if (group.depth == 0) {
    report(describe("a group is closed that nobody began",
                    "rank " + std::to_string(here->rank)));
    return ncclInvalidArgument;
  }
  if (--group.depth != 0)
    return ncclSuccess;
  Group ended = std::exchange(group, {});
  using Launches = std::map<cudaStream_t, std::vector<End>>;
  std::vector<std::pair<ncclComm_t, Launches>> calls;
  for (auto &[comm, end] : ended.posts) {
    auto call = std::find_if(calls.begin(), calls.end(), [&](const auto &one) {
      return one.first == comm;
    });
    if (call == calls.end())
      call = calls.insert(calls.end(), {comm, {}});
    call->second[end.first].push_back(end.second);
  }
  if (!calls.empty() &&
      std::any_of(calls.begin(), calls.end(), [&](const auto &call) {
        return call.first->blocks != calls[0].first->blocks;
      }))
    report(describe("a group has communicators of which not all block",
                    "rank " + std::to_string(here->rank)));
  std::string what;
  for (auto &[comm, launches] : calls) {
    if (launches.size() > 1)
      report(describe("a group puts one communicator on several streams",
                      "rank " + std::to_string(here->rank)));
    for (auto &[stream, ends] : launches)
      for (const End &end : ends) {
        std::string call = nameOf(end) + " of communicator " +
                           std::to_string(comm->world->number);
        what += (what.empty() ? "" : ", ") + nameOf(end);
        connect(*comm, end, describe(call, nameOf(*stream)));
      }
  }
  lock.unlock();
  ncclResult_t code = isBroken ? ncclInternalError : ncclSuccess;
  for (auto &[comm, launches] : calls) {
    auto hasMet = [comm, launches, place = here->place] {
      for (auto &[stream, ends] : launches)
        for (const End &end : ends)
          if (!isConnected(*comm, end))
            return false;
      std::string outer = std::exchange(here->place, place);
      for (auto &[stream, ends] : launches)
        issueOrCapture(
            *stream, [comm, ends](FakeStream &on) { launch(comm, on, ends); });
      here->place = outer;
      return true;
    };
    if (ncclResult_t own = meet(*comm, what, hasMet); own != ncclSuccess)
      code = own;
  }
  awaitIdle(ended.aborted);
  return code;
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
ncclResult_t ncclReduceScatter(const void *all, void *own, size_t count,
                               ncclDataType_t, ncclRedOp_t, ncclComm_t comm,
                               cudaStream_t stream) {
  return post(comm, stream,
              {End::Scatter, 0, static_cast<char *>(const_cast<void *>(all)),
               static_cast<char *>(own), count * sizeof(double), nullptr});
}

} // extern "C"
