// A GPU a rank, with NCCL. Needs the CUDA runtime and NCCL 2.18 or later.
#pragma once

#include "ppcc/Runtime/Engine.h"
#include "ppcc/Runtime/NcclCommunicators.h"
#include "ppcc/Runtime/Transfers.h"

namespace ppcc::rt {

/// A rank's end of the communicators that it makes of the user's: one for all
/// messages, on one stream, what the compiler calls `stream`; or where the
/// program is proven for `stream-per-edge`, one for each directed edge, each on
/// its stream. The bytes of values (Bytes<Value>) lie on the device, and stay
/// where they are when a value is moved. A value that is destroyed must give
/// its memory back after what stream(0) holds by then.
///
/// Messages have no tags: they match by their order, which the compiler proved,
/// and the stage must say the size of each (`messageBytes`; of what actions
/// move between ranks, `moveBytes`).
///
/// Make the communicator with `blocking = 0` in its ncclConfig_t; otherwise the
/// first meeting of all ranks ends by the watchdog alone. After a failure it
/// has been aborted, and must not be used nor destroyed.
template <class Value>
  requires HasBytes<Value>
class Nccl {
public:
  static constexpr bool untagged = true;

  /// The device of the communicator must be the current one.
  explicit Nccl(ncclComm_t comm, NcclOptions options = {})
      : job(comm, std::move(options), cuda) {
    lanes.push_back(cuda.newStream(false));
  }
  Nccl(const Nccl &) = delete;
  Nccl &operator=(const Nccl &) = delete;
  /// Waits until the streams are empty, unless the device did not stop after a
  /// failure: then what it may still use stays.
  ~Nccl() {
    closeBatch();
    if (deviceHung) {
      new Transfers<Value, cudaEvent_t>(std::move(transfers));
      return;
    }
    // Values go back in the order of a stream, which must be there.
    transfers = {};
    cuda.synchronize();
    job.destroy();
    cuda.destroy();
  }

  uint32_t rank() const { return static_cast<uint32_t>(job.rank()); }
  uint32_t numRanks() const { return static_cast<uint32_t>(job.size()); }
  /// Where a stage issues its work: stream(work.lane). The members of a group
  /// have a stream each, so that they overlap without Overlap::Together; the
  /// first waits for the others when the group ends.
  cudaStream_t stream(uint16_t lane) const { return lanes[lane]; }

  std::vector<std::string> gather(const std::string &text,
                                  milliseconds timeout) {
    return job.gather(text, timeout);
  }
  /// Makes the communicators of a program, and lets all ranks meet that have
  /// messages for each other.
  void open(const Program &program, milliseconds timeout) {
    job.open(program, timeout);
  }

  /// What is posted until endBatch() is one operation.
  void beginBatch() {
    job.heartbeat();
    job.check(ncclGroupStart(), "ncclGroupStart");
    inBatch = true;
  }
  void endBatch() {
    job.check(closeBatch(), "ncclGroupEnd");
    job.heartbeat();
    for (auto [transfer, stream] : std::exchange(batch, {}))
      record(transfer->request, stream);
  }

  /// Lets the streams of the members of a group begin.
  void fork(size_t members) {
    while (lanes.size() < members)
      lanes.push_back(cuda.newStream(false));
    for (size_t lane = 1; lane < members; ++lane)
      cuda.waitStream(lanes[lane], lanes[0]);
  }
  /// Lets the first member's stream wait for the others.
  void join(size_t members) {
    for (size_t lane = 1; lane < members; ++lane)
      cuda.waitStream(lanes[0], lanes[lane]);
  }

  /// The value of a cell has been made on a lane: sendProduced() waits for
  /// that, and for nothing that the lane gets later.
  void recordProduced(size_t cell, uint16_t lane) {
    job.heartbeat();
    if (cell >= readyEvents.size())
      readyEvents.resize(cell + 1);
    if (!readyEvents[cell])
      readyEvents[cell] = cuda.acquireEvent();
    record(readyEvents[cell], lanes[lane]);
  }
  void sendProduced(uint32_t to, Message<Value> &&message, size_t cell) {
    NcclChannel &channel = channelTo(to, message.label);
    checkCuda(cudaStreamWaitEvent(channel.stream, readyEvents[cell], 0),
              "cudaStreamWaitEvent");
    post(to, channel, std::move(message));
  }
  void send(uint32_t to, Message<Value> &&message) {
    NcclChannel &channel = channelTo(to, message.label);
    cuda.waitStream(channel.stream, lanes[0]);
    post(to, channel, std::move(message));
  }

  void postReceive(uint32_t from, const Label &label, size_t bytes) {
    job.heartbeat();
    if (!inBatch)
      recycleReceiveEvents();
    if (bytes == 0)
      throw std::runtime_error(
          std::string("NCCL must know the size of a message before it comes, "
                      "and `") +
          (label.isMove() ? "moveBytes" : "messageBytes") + "` says none");
    Transfer &transfer = withEvent(transfers.newReceive(from, label));
    std::span<std::byte> data = transfer.allocate(bytes);
    NcclChannel &channel = job.channelFrom(from, label.isMove());
    // The memory may still be read by what has been computed.
    cuda.waitStream(channel.stream, lanes[0]);
    issue(transfer, channel, "ncclRecv",
          ncclRecv(data.data(), data.size(), ncclInt8,
                   job.peerOn(channel, from), channel.comm, channel.stream));
  }

  bool receive(uint32_t from, Message<Value> &into, milliseconds timeout) {
    job.heartbeat();
    Transfer &transfer = transfers.receives(from).front();
    if (job.options.waitsOnHost)
      job.waitUntil(timeout, [&] { return isDone(transfer.request); });
    else
      checkCuda(cudaStreamWaitEvent(lanes[0], transfer.request, 0),
                "cudaStreamWaitEvent");
    into = std::move(transfer.message);
    received.push_back({transfer.request, into.label});
    transfers.receives(from).pop_front();
    return true;
  }

  /// A later receive gets the memory.
  void recycle(Value &&value) { transfers.recycle(std::move(value)); }

  bool sendsMatched(uint32_t to, milliseconds timeout) {
    if (isCapturing)
      throw std::runtime_error(
          "a step in which the host waits for sends cannot be captured");
    job.waitUntil(timeout, [&] { return transfers.allSent(to, isDone); });
    return true;
  }

  /// Waits for all that was issued, computation included.
  void finish(milliseconds timeout) {
    for (NcclChannel &channel : job.channels())
      if (std::exchange(channel.isUsed, false))
        cuda.waitStream(lanes[0], channel.stream);
    try {
      if (!isCapturing)
        job.synchronizeStream(lanes[0], timeout);
    } catch (const TimedOut &) {
      throwStalled();
    }
    completeSends(true);
    recycleReceiveEvents(true);
    job.idle();
  }

  /// Until endCapture() what a step issues becomes a graph and does not run.
  /// Nothing may be under way, and the stage must not wait for the device. What
  /// is sent keeps its memory until the end of the graph, which takes all its
  /// memory itself.
  void beginCapture() {
    if (job.options.waitsOnHost)
      throw std::runtime_error("a step in which the host waits for messages "
                               "cannot be captured: leave `waitsOnHost` out");
    transfers.clearPool();
    // Other threads, the watchdog among them, may go on.
    checkCuda(
        cudaStreamBeginCapture(lanes[0], cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
    isCapturing = true;
  }
  /// The graph of the step, for cudaGraphInstantiate() and cudaGraphLaunch() on
  /// stream(0); finish() waits for its end.
  cudaGraph_t endCapture() {
    transfers.clearPool();
    isCapturing = false;
    cudaGraph_t graph = nullptr;
    checkCuda(cudaStreamEndCapture(lanes[0], &graph), "cudaStreamEndCapture");
    return graph;
  }

  /// Aborts the communicators, so that the device stops waiting; both have
  /// `options.abortTimeout` each.
  void fail(const std::string &text) {
    if (job.options.broadcastFailure && !job.failedByPeer)
      job.options.broadcastFailure(text);
    closeBatch();
    if (std::exchange(isCapturing, false)) {
      cudaGraph_t graph = nullptr;
      if (cudaStreamEndCapture(lanes[0], &graph) == cudaSuccess && graph)
        cudaGraphDestroy(graph);
    }
    if (!job.abort()) {
      deviceHung = true;
      return;
    }
    try {
      for (NcclChannel &channel : job.channels())
        cuda.waitStream(lanes[0], channel.stream);
      for (size_t lane = 1; lane < lanes.size(); ++lane)
        cuda.waitStream(lanes[0], lanes[lane]);
      cudaEvent_t ended = cuda.acquireEvent();
      record(ended, lanes[0]);
      rt::waitUntil(
          job.options.abortTimeout, [&] { return isDone(ended); }, [] {});
    } catch (const TimedOut &) {
      deviceHung = true;
    } catch (const std::exception &) {
      // The device has failed itself, and runs nothing any more; where only the
      // question failed, what was issued still uses the stages.
      cuda.synchronize();
    }
  }

private:
  /// The event is recorded after the message.
  using Transfer = rt::Transfer<Value, cudaEvent_t>;

  static void record(cudaEvent_t event, cudaStream_t stream) {
    checkCuda(cudaEventRecord(event, stream), "cudaEventRecord");
  }

  NcclChannel &channelTo(uint32_t to, const Label &label) {
    job.heartbeat();
    return job.channelTo(to, label.isMove());
  }
  Transfer &withEvent(Transfer &transfer) {
    transfer.request = cuda.acquireEvent();
    return transfer;
  }
  void post(uint32_t to, NcclChannel &channel, Message<Value> &&message) {
    // In a batch the events of its messages are not recorded yet.
    if (!inBatch)
      completeSends();
    Transfer &transfer = withEvent(transfers.newSend(to));
    transfer.message = std::move(message);
    std::span<std::byte> data = Bytes<Value>::of(transfer.message.value);
    issue(transfer, channel, "ncclSend",
          ncclSend(data.data(), data.size(), ncclInt8, job.peerOn(channel, to),
                   channel.comm, channel.stream));
  }
  /// The values of the sends that have ended go; while nothing runs, all go at
  /// the end.
  void completeSends(bool atEnd = false) {
    auto isOver = [&](cudaEvent_t event) {
      return isCapturing ? atEnd : isDone(event);
    };
    transfers.completeSends(
        isOver, [&](Transfer &sent) { cuda.releaseEvent(sent.request); });
  }
  /// Those that have come.
  void recycleReceiveEvents(bool atEnd = false) {
    while (!received.empty() &&
           (isCapturing ? atEnd : isDone(received.front().event))) {
      cuda.releaseEvent(received.front().event);
      received.pop_front();
    }
  }
  [[noreturn]] void throwStalled() {
    recycleReceiveEvents();
    completeSends();
    StalledAt stuck{};
    if (!received.empty())
      stuck.label = received.front().label;
    else if (!transfers.sends.empty())
      stuck.label = transfers.sends.front().message.label;
    else
      throw TimedOut();
    throw stuck;
  }

  void issue(Transfer &transfer, NcclChannel &channel, const char *what,
             ncclResult_t code) {
    job.check(code, what);
    channel.isUsed = true;
    if (inBatch)
      batch.push_back({&transfer, channel.stream});
    else
      record(transfer.request, channel.stream);
  }
  /// The group is closed on every path: another thread's would be part of it.
  ncclResult_t closeBatch() {
    return std::exchange(inBatch, false) ? ncclGroupEnd() : ncclSuccess;
  }

  CudaPool cuda;
  NcclCommunicators job;
  std::vector<cudaStream_t> lanes;      ///< Of computation.
  std::vector<cudaEvent_t> readyEvents; ///< By cell.
  std::vector<std::pair<Transfer *, cudaStream_t>> batch;
  Transfers<Value, cudaEvent_t> transfers;
  struct Received {
    cudaEvent_t event;
    Label label;
  };
  std::deque<Received> received; ///< As far as it is not known to have come.
  bool inBatch = false, isCapturing = false;
  bool deviceHung = false; ///< The device has not stopped after a failure.
};

} // namespace ppcc::rt
