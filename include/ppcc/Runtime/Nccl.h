// A GPU a rank, with NCCL. Needs the CUDA runtime and NCCL 2.14 or later.
#pragma once

#include "ppcc/Runtime/Await.h"
#include "ppcc/Runtime/Engine.h"
#include "ppcc/Runtime/Transfers.h"

#include <cuda_runtime_api.h>
#include <functional>
#include <memory>
#include <nccl.h>

namespace ppcc::rt {

struct NcclOptions {
  /// False: a rank puts the wait for what it receives into the compute stream
  /// and runs ahead; an error and the limit of a wait are noticed when the
  /// program has been issued. True: it waits, so that they are noticed at the
  /// action.
  bool waitsOnHost = false;
  /// The limit of a call that opens connections within.
  std::chrono::milliseconds patience = std::chrono::minutes(10);
  /// How long an aborted communicator may take to stop.
  std::chrono::milliseconds grace = std::chrono::seconds(1);
  /// How ranks hear of a failure: NCCL does not tell those that wait. `raise`
  /// tells all others, `heard` gives what another rank has told. Without them
  /// the others end when their patience does.
  std::function<void(const std::string &)> raise;
  std::function<std::optional<std::string>()> heard;
};

/// A rank's end of a communicator, on one stream for all communication: what
/// the compiler calls `stream`. The bytes of values (Bytes<Value>) lie on the
/// device, and stay where they are when a value is moved. A value that is
/// destroyed must give its memory back behind what stream(0) holds by then.
///
/// Messages have no tags: they match by their order, which the compiler proved,
/// and the stage must say the size of each (`messageBytes`).
///
/// Make the communicator with `blocking = 0` in its ncclConfig_t; otherwise the
/// first meeting of two ranks waits without a limit. After a failure it has
/// been aborted, and must not be used nor destroyed.
template <class Value>
  requires HasBytes<Value>
class Nccl {
public:
  static constexpr bool untagged = true;

  /// The device of the communicator must be the current one.
  explicit Nccl(ncclComm_t comm, NcclOptions options = {})
      : comm(comm), options(std::move(options)) {
    check(ncclCommUserRank(comm, &ownRank), "ncclCommUserRank");
    check(ncclCommCount(comm, &size), "ncclCommCount");
    int lowest, highest;
    check(cudaDeviceGetStreamPriorityRange(&lowest, &highest),
          "cudaDeviceGetStreamPriorityRange");
    communication = newStream(highest);
    lanes.push_back(newStream(lowest));
    check(cudaMalloc(&scratch.emplace_back(), 2), "cudaMalloc");
    check(cudaMemcpyAsync(scratch.front(), "hi", 2, cudaMemcpyHostToDevice,
                          communication),
          "cudaMemcpyAsync");
    turn = newEvent();
  }
  Nccl(const Nccl &) = delete;
  Nccl &operator=(const Nccl &) = delete;
  /// Waits until the streams are empty, unless the device did not stop after a
  /// failure: then what it may still use stays.
  ~Nccl() {
    if (isLost) {
      leak();
      return;
    }
    // Values go back in the order of a stream, which must be there.
    transfers.abandon([&](Transfer kept) { transfers.drop(std::move(kept)); });
    transfers.clearPool();
    synchronize();
    cudaStreamDestroy(communication);
    for (cudaStream_t stream : lanes)
      cudaStreamDestroy(stream);
    for (void *memory : scratch)
      cudaFree(memory);
    for (cudaEvent_t event : events)
      cudaEventDestroy(event);
  }

  uint32_t rank() const { return static_cast<uint32_t>(ownRank); }
  uint32_t numRanks() const { return static_cast<uint32_t>(size); }
  /// Where a stage issues its work: stream(work.lane). The members of a group
  /// have a stream each, so that they overlap without Overlap::Together; the
  /// first waits for the others when the group ends.
  cudaStream_t stream(uint16_t lane) const { return lanes[lane]; }

  /// What each rank says; all say as many bytes. Collective.
  std::vector<std::string> gather(const std::string &text,
                                  std::chrono::milliseconds patience) {
    std::string all(text.size() * size_t(size), ' ');
    void *&memory = scratch.emplace_back();
    check(cudaMalloc(&memory, all.size() + text.size()), "cudaMalloc");
    char *own = static_cast<char *>(memory) + all.size();
    check(cudaMemcpyAsync(own, text.data(), text.size(), cudaMemcpyHostToDevice,
                          communication),
          "cudaMemcpyAsync");
    settle(
        ncclAllGather(own, memory, text.size(), ncclInt8, comm, communication),
        "ncclAllGather", patience);
    Event met(*this);
    check(cudaEventRecord(met, communication), "cudaEventRecord");
    await(patience, [&] { return isDone(met); });
    check(cudaMemcpyAsync(all.data(), memory, all.size(),
                          cudaMemcpyDeviceToHost, communication),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(communication), "cudaStreamSynchronize");
    return split(all, text.size());
  }

  /// Exchanges a byte with another rank, which opens the connection.
  void connect(uint32_t other, std::chrono::milliseconds patience) {
    char *bytes = static_cast<char *>(scratch.front());
    beginBatch();
    check(ncclSend(bytes, 1, ncclInt8, int(other), comm, communication),
          "ncclSend");
    check(ncclRecv(bytes + 1, 1, ncclInt8, int(other), comm, communication),
          "ncclRecv");
    endBatch(patience);
    Event met(*this);
    check(cudaEventRecord(met, communication), "cudaEventRecord");
    await(patience, [&] { return isDone(met); });
  }

  /// What is posted until endBatch() is one operation.
  void beginBatch() {
    check(ncclGroupStart(), "ncclGroupStart");
    inBatch = true;
  }
  void endBatch() { endBatch(options.patience); }
  void endBatch(std::chrono::milliseconds patience) {
    inBatch = false; // Whatever comes of it, the group is closed.
    settle(ncclGroupEnd(), "ncclGroupEnd", patience);
    for (Moving *moving : batch)
      record(*moving);
    batch.clear();
  }

  /// Lets the streams of the members of a group begin.
  void fork(size_t members) {
    while (lanes.size() < members)
      lanes.push_back(newStream(0));
    for (size_t lane = 1; lane < members; ++lane)
      follow(lanes[lane], lanes[0]);
  }
  /// Lets the first member's stream wait for the others.
  void join(size_t members) {
    for (size_t lane = 1; lane < members; ++lane)
      follow(lanes[0], lanes[lane]);
  }

  /// The value of a cell has been made on a lane: sendMade() waits for that,
  /// and for nothing that the lane gets later.
  void made(size_t cell, uint16_t lane) {
    if (cell >= whenMade.size())
      whenMade.resize(cell + 1);
    if (!whenMade[cell])
      whenMade[cell] = newEvent();
    check(cudaEventRecord(whenMade[cell], lanes[lane]), "cudaEventRecord");
  }
  void sendMade(uint32_t to, Message<Value> &&message, size_t cell) {
    check(cudaStreamWaitEvent(communication, whenMade[cell], 0),
          "cudaStreamWaitEvent");
    post(to, std::move(message));
  }
  void send(uint32_t to, Message<Value> &&message) {
    follow(communication, lanes[0]);
    post(to, std::move(message));
  }

  void postReceive(uint32_t from, const Label &label, size_t bytes) {
    if (bytes == 0)
      throw std::runtime_error("NCCL must know the size of a message before it "
                               "comes, and `messageBytes` says none");
    Transfer transfer = withEvent(transfers.freshReceive(from, label));
    if (!Bytes<Value>::resize(transfer->message.value, bytes))
      throw std::runtime_error("values have no size of " +
                               std::to_string(bytes) + " bytes");
    std::span<std::byte> data = Bytes<Value>::of(transfer->message.value);
    // The memory may still be read by what has been computed.
    follow(communication, lanes[0]);
    issue(*transfer, "ncclRecv", [&] {
      return ncclRecv(data.data(), data.size(), ncclInt8, int(from), comm,
                      communication);
    });
    transfers.receives.of(from).push(std::move(transfer));
  }

  bool receive(uint32_t from, Message<Value> &into,
               std::chrono::milliseconds patience) {
    Moving &transfer = *transfers.receives.of(from).front();
    if (options.waitsOnHost)
      await(patience, [&] { return isDone(transfer.request); });
    else
      check(cudaStreamWaitEvent(lanes[0], transfer.request, 0),
            "cudaStreamWaitEvent");
    into = std::move(transfer.message);
    transfers.drop(transfers.receives.of(from).pop());
    return true;
  }

  /// A later receive gets the memory.
  void recycle(Value &&value) { transfers.recycle(std::move(value)); }

  bool sendsMet(uint32_t to, std::chrono::milliseconds patience) {
    await(patience, [&] { return transfers.sent(to, isDone); });
    return true;
  }

  /// Waits for all that was issued, computation included.
  void finish(std::chrono::milliseconds patience) {
    follow(communication, lanes[0]);
    Event ended(*this);
    check(cudaEventRecord(ended, communication), "cudaEventRecord");
    await(patience, [&] { return isDone(ended); });
    dropSends();
  }

  /// Aborts the communicator, so that the device stops waiting, and gives it
  /// `options.grace` to do what was issued.
  void fail(const std::string &text) {
    if (options.raise && !wasTold)
      options.raise(text);
    if (std::exchange(inBatch, false))
      ncclGroupEnd();
    ncclCommAbort(comm);
    try {
      for (cudaStream_t stream : lanes)
        follow(communication, stream);
      Event ended(*this);
      check(cudaEventRecord(ended, communication), "cudaEventRecord");
      rt::await(options.grace, [&] { return isDone(ended); }, [] {});
    } catch (const TimedOut &) {
      isLost = true;
    } catch (const std::exception &) {
      // The device has failed itself, and runs nothing any more; where only the
      // question failed, what was issued still uses the stages.
      synchronize();
    }
  }

private:
  /// The event is recorded behind the message.
  using Moving = rt::Moving<Value, cudaEvent_t>;
  using Transfer = typename Transfers<Value, cudaEvent_t>::Transfer;

  /// An event for the time of a scope.
  class Event {
  public:
    explicit Event(Nccl &owner) : owner(owner), event(owner.takeEvent()) {}
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;
    ~Event() { owner.spareEvents.push_back(event); }
    operator cudaEvent_t() const { return event; }

  private:
    Nccl &owner;
    cudaEvent_t event;
  };

  static void check(cudaError_t code, const char *what) {
    if (code != cudaSuccess)
      throw std::runtime_error(std::string(what) + ": " +
                               cudaGetErrorString(code));
  }
  void check(ncclResult_t code, const char *what) const {
    if (code == ncclSuccess || code == ncclInProgress)
      return;
    throw std::runtime_error(std::string(what) + ": " +
                             ncclGetErrorString(code));
  }

  static cudaStream_t newStream(int priority) {
    cudaStream_t stream;
    check(
        cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority),
        "cudaStreamCreateWithPriority");
    return stream;
  }
  cudaEvent_t newEvent() {
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
          "cudaEventCreateWithFlags");
    events.push_back(event);
    return event;
  }
  cudaEvent_t takeEvent() {
    if (spareEvents.empty())
      return newEvent();
    cudaEvent_t event = spareEvents.back();
    spareEvents.pop_back();
    return event;
  }
  static bool isDone(cudaEvent_t event) {
    cudaError_t code = cudaEventQuery(event);
    if (code == cudaErrorNotReady)
      return false;
    check(code, "cudaEventQuery");
    return true;
  }

  Transfer withEvent(Transfer transfer) {
    if (!transfer->request)
      transfer->request = newEvent();
    return transfer;
  }
  void post(uint32_t to, Message<Value> &&message) {
    // In a batch the events of its messages are not recorded yet.
    if (!inBatch)
      dropSends();
    Transfer transfer = withEvent(transfers.fresh(to));
    transfer->message = std::move(message);
    std::span<std::byte> data = Bytes<Value>::of(transfer->message.value);
    issue(*transfer, "ncclSend", [&] {
      return ncclSend(data.data(), data.size(), ncclInt8, int(to), comm,
                      communication);
    });
    transfers.sends.push(std::move(transfer));
  }
  /// The values of the sends that have ended go.
  void dropSends() {
    transfers.endSends(isDone,
                       [&](Transfer sent) { transfers.drop(std::move(sent)); });
  }
  void leak() { new Transfers<Value, cudaEvent_t>(std::move(transfers)); }

  void synchronize() {
    cudaStreamSynchronize(communication);
    for (cudaStream_t stream : lanes)
      cudaStreamSynchronize(stream);
  }

  /// What `later` gets from now on waits for what `earlier` has.
  void follow(cudaStream_t later, cudaStream_t earlier) {
    check(cudaEventRecord(turn, earlier), "cudaEventRecord");
    check(cudaStreamWaitEvent(later, turn, 0), "cudaStreamWaitEvent");
  }

  template <class Call>
  void issue(Moving &moving, const char *what, Call call) {
    if (inBatch) {
      check(call(), what);
      batch.push_back(&moving);
      return;
    }
    settle(call(), what, options.patience);
    record(moving);
  }
  void record(Moving &moving) {
    check(cudaEventRecord(moving.request, communication), "cudaEventRecord");
  }

  /// Waits until a call has been issued: the first of two ranks opens their
  /// connection.
  void settle(ncclResult_t code, const char *what,
              std::chrono::milliseconds patience) {
    check(code, what);
    if (code == ncclInProgress)
      await(patience, [&] { return state() != ncclInProgress; });
  }

  /// Throws when the communicator has failed.
  ncclResult_t state() {
    ncclResult_t code;
    check(ncclCommGetAsyncError(comm, &code), "ncclCommGetAsyncError");
    if (code == ncclRemoteError)
      throw PeerFailed{std::string("NCCL: ") + ncclGetErrorString(code)};
    check(code, "NCCL");
    return code;
  }

  template <class Done>
  void await(std::chrono::milliseconds patience, Done done) {
    rt::await(patience, done, [&] {
      listen();
      state();
    });
  }

  /// Throws when another rank has said that it failed.
  void listen() {
    if (!options.heard)
      return;
    if (std::optional<std::string> text = options.heard()) {
      wasTold = true;
      throw PeerFailed{*text};
    }
  }

  ncclComm_t comm;
  NcclOptions options;
  int ownRank = 0, size = 0;
  cudaStream_t communication = nullptr;
  std::vector<cudaStream_t> lanes; ///< Of computation.
  /// Two bytes for connections, and what was gathered in: to free it earlier
  /// would wait for the device.
  std::vector<void *> scratch;
  cudaEvent_t turn = nullptr; ///< For follow().
  std::vector<cudaEvent_t> events, spareEvents;
  std::vector<cudaEvent_t> whenMade; ///< By cell.
  std::vector<Moving *> batch;
  Transfers<Value, cudaEvent_t> transfers;
  bool inBatch = false, wasTold = false;
  bool isLost = false; ///< The device has not stopped after a failure.
};

} // namespace ppcc::rt
