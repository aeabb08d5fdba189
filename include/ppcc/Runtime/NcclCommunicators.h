// The communicators of a rank, by the edges of its program: made in an order
// that cannot hang, watched, and aborted within a limit.
#pragma once

#include "ppcc/Runtime/Cuda.h"
#include "ppcc/Runtime/Rows.h"
#include "ppcc/Runtime/Transfers.h"
#include "ppcc/Runtime/Watchdog.h"

#include <algorithm>
#include <compare>
#include <cstring>
#include <deque>
#include <map>
#include <nccl.h>
#include <set>
#include <vector>

namespace ppcc::rt {

/// One direction between two ranks; what actions move has edges of its own.
struct RankEdge {
  uint32_t from, to;
  bool isMove;

  auto operator<=>(const RankEdge &) const = default;
};

/// O(stages + skip edges); O(rows) where actions move something.
inline std::set<RankEdge> edgesOf(const Program &program) {
  std::set<RankEdge> edges;
  auto add = [&](uint32_t from, uint32_t to, bool isMove) {
    if (from != to)
      edges.insert({from, to, isMove});
  };
  auto addBoth = [&](const Pipe &pipe, uint32_t from, uint32_t to) {
    add(pipe.rankOfStage[from], pipe.rankOfStage[to], false);
    if (program.hasBackward)
      add(pipe.rankOfStage[to], pipe.rankOfStage[from], false);
  };
  for (const Pipe &pipe : program.pipes) {
    for (uint32_t stage = 0; stage + 1 < pipe.numStages(); ++stage)
      if (pipe.hasEdgeToNext(stage))
        addBoth(pipe, stage, stage + 1);
    for (SkipEdge edge : pipe.skipEdges)
      addBoth(pipe, edge.from, edge.to);
  }
  if (std::ranges::any_of(program.kinds, &Kind::isMove))
    for (const RankProgram &list : program.ranks)
      for (uint64_t i = 0; i != list.numRows(); ++i) {
        Row row = list.row(i);
        const Kind &kind = program.kinds[row.kind];
        if (!kind.isMove())
          continue;
        const Pipe &pipe = program.pipes[row.pipe];
        uint32_t near = pipe.rankOfStage[row.stage],
                 far = pipe.rankOfStage[row.peer];
        if (kind.collective == Collective::To)
          add(near, far, true);
        else
          add(far, near, true);
      }
  return edges;
}

/// The pairs of ranks of some edges in rounds, in each of which a rank stands
/// once at most: what pairs do together round by round never waits in a cycle.
/// At most twice as many rounds as a rank has partners.
inline std::vector<std::vector<RankPair>>
edgeColoring(const std::set<RankEdge> &edges) {
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  for (const RankEdge &edge : edges)
    pairs.insert(std::minmax(edge.from, edge.to));
  std::vector<std::vector<RankPair>> rounds;
  std::vector<std::set<uint32_t>> busy;
  for (auto [first, second] : pairs) {
    size_t round = 0;
    while (round != rounds.size() &&
           (busy[round].contains(first) || busy[round].contains(second)))
      ++round;
    if (round == rounds.size())
      rounds.emplace_back(), busy.emplace_back();
    rounds[round].push_back({first, second});
    busy[round].insert({first, second});
  }
  return rounds;
}

struct NcclOptions {
  /// False: a rank puts the wait for what it receives into the compute stream
  /// and runs ahead; an error and the limit of a wait are noticed when the
  /// program has been issued. True: it waits, so that they are noticed at the
  /// action.
  bool waitsOnHost = false;
  /// How long a rank may stay away from the transport within a step: in a call
  /// of CUDA or NCCL, or in the stage.
  milliseconds timeout = std::chrono::minutes(10);
  /// How long aborted communicators may take to stop.
  milliseconds abortTimeout = std::chrono::seconds(1);
  /// How ranks hear of a failure: NCCL does not tell those that wait.
  /// `broadcastFailure` tells all others, `peerFailure` gives what another rank
  /// has said; several threads call it. Without them the others end after their
  /// timeout.
  std::function<void(const std::string &)> broadcastFailure;
  std::function<std::optional<std::string>()> peerFailure;
};

/// What messages go through: those of one edge, or all of a rank.
struct NcclChannel {
  ncclComm_t comm;
  cudaStream_t stream;
  bool isPerEdge;      ///< Its communicator has two ranks.
  bool isUsed = false; ///< It got something since this was last cleared.
};

class NcclCommunicators {
public:
  NcclCommunicators(ncclComm_t comm, NcclOptions given, CudaPool &cuda)
      : options(std::move(given)), cuda(cuda),
        comms(new Comms{comm, options.peerFailure}),
        watchdog(options.timeout, std::bind_front(&Comms::findError, comms),
                 std::bind_front(&Comms::abort, comms)) {
    try {
      waitForAsync(ncclSuccess, "the communicator", comm, options.timeout);
    } catch (const TimedOut &) {
      throw std::runtime_error(concat("the communicator: has waited ",
                                      options.timeout.count(),
                                      " ms for the other ranks"));
    }
    watchdog.idle();
    check(ncclCommUserRank(comm, &ownRank), "ncclCommUserRank");
    check(ncclCommCount(comm, &numRanks), "ncclCommCount");
    control = cuda.newStream(false);
  }

  int rank() const { return ownRank; }
  int size() const { return numRanks; }

  /// A call may fail because the watchdog has aborted its communicator: then
  /// what the watchdog has heard is the error.
  void check(ncclResult_t code, const char *what) {
    if (code == ncclSuccess || code == ncclInProgress)
      return;
    heartbeat();
    throwAborted(concat(what, ": ", ncclGetErrorString(code)));
  }

  /// What each rank says; all say as many bytes. Collective.
  std::vector<std::string> gather(const std::string &text,
                                  milliseconds timeout) {
    std::string all(text.size() * size_t(numRanks), ' ');
    char *memory = newScratch(all.size() + text.size());
    char *own = memory + all.size();
    checkCuda(cudaMemcpyAsync(own, text.data(), text.size(),
                              cudaMemcpyHostToDevice, control),
              "cudaMemcpyAsync");
    waitForAsync(ncclAllGather(own, memory, text.size(), ncclInt8, comms->first,
                               control),
                 "ncclAllGather", comms->first, timeout);
    synchronizeStream(control, timeout);
    checkCuda(cudaMemcpyAsync(all.data(), memory, all.size(),
                              cudaMemcpyDeviceToHost, control),
              "cudaMemcpyAsync");
    checkCuda(cudaStreamSynchronize(control), "cudaStreamSynchronize");
    watchdog.idle();
    return splitEqually(all, text.size());
  }

  /// Opens what the edges of a program need and was not opened before.
  /// Collective: in rounds of pairs, so that no order of the messages can hang
  /// at the first of two ranks. Throws std::runtime_error where NCCL cannot
  /// carry what the program was proven for.
  void open(const Program &program, milliseconds timeout) {
    isPerEdge = needsPerEdge(program);
    std::set<RankEdge> fresh;
    for (const RankEdge &edge : edgesOf(program))
      if (opened[isPerEdge].insert(edge).second)
        fresh.insert(edge);
    std::string text(1 + fresh.size(), 'h');
    char *bytes = newScratch(text.size());
    checkCuda(cudaMemcpyAsync(bytes, text.data(), text.size(),
                              cudaMemcpyHostToDevice, control),
              "cudaMemcpyAsync");
    synchronizeStream(control, timeout);
    if (!isPerEdge)
      for (bool isMove : {false, true})
        if (!shared[isMove] && hasMoves(fresh, isMove))
          shared[isMove] = addChannel(newComm(0, timeout), false);
    for (const std::vector<RankPair> &round : edgeColoring(fresh)) {
      if (isPerEdge)
        splitPerEdge(round, fresh, timeout);
      warmUp(round, fresh, bytes, timeout);
    }
    watchdog.idle();
  }

  NcclChannel &channelTo(uint32_t other, bool isMove) {
    return channelOf({uint32_t(ownRank), other, isMove});
  }
  NcclChannel &channelFrom(uint32_t other, bool isMove) {
    return channelOf({other, uint32_t(ownRank), isMove});
  }
  std::deque<NcclChannel> &channels() { return all; }
  /// The number of another rank there.
  int peerOn(const NcclChannel &channel, uint32_t other) const {
    return channel.isPerEdge ? int(other) > ownRank : int(other);
  }

  /// Waits for what a stream has got.
  void synchronizeStream(cudaStream_t stream, milliseconds timeout) {
    cudaEvent_t ended = cuda.acquireEvent();
    checkCuda(cudaEventRecord(ended, stream), "cudaEventRecord");
    waitUntil(timeout, [&] { return isDone(ended); });
    cuda.releaseEvent(ended);
  }
  template <class Done> void waitUntil(milliseconds timeout, Done done) {
    rt::waitUntil(timeout, done, [&] {
      heartbeat();
      if (std::optional<std::string> error = comms->findError())
        throwAborted(*error);
    });
  }

  /// To be called when the transport is: throws when the watchdog has acted.
  void heartbeat() {
    watchdog.heartbeat();
    if (comms->isAborted)
      throwAborted(comms->why.value_or(concat(
          "the rank was away from the transport for ", options.timeout.count(),
          " ms, and its communicators were aborted")));
  }
  void idle() { watchdog.idle(); }

  /// Aborts all communicators; false when they did not stop in time.
  bool abort() {
    bool stopped = watchdog.triggerNow(options.abortTimeout);
    watchdog.idle();
    return stopped;
  }
  /// Gives back what it has made; the streams must be empty.
  void destroy() {
    watchdog.idle();
    for (ncclComm_t made : comms->made)
      if (!comms->isAborted)
        ncclCommDestroy(made);
    for (void *memory : scratch)
      cudaFree(memory);
  }

  const NcclOptions options;
  /// Whether this rank has thrown because another one failed.
  bool failedByPeer = false;

private:
  /// What the watchdog uses.
  struct Comms {
    const ncclComm_t first; ///< The user's.
    const std::function<std::optional<std::string>()> peerFailure;
    std::mutex mutex{};
    std::vector<ncclComm_t> made{}; ///< Of it.
    std::atomic<bool> isAborted = false;
    std::atomic<bool> isRemote = false; ///< What is wrong is another rank.
    std::optional<std::string> why{};

    std::optional<std::string> findError() {
      if (std::optional<std::string> text;
          peerFailure && (text = peerFailure()))
        return text;
      std::lock_guard lock(mutex);
      if (isAborted)
        return std::nullopt;
      std::optional<std::string> found = asyncErrorOf(first);
      for (size_t i = 0; i != made.size() && !found; ++i)
        found = asyncErrorOf(made[i]);
      return found;
    }
    std::optional<std::string> asyncErrorOf(ncclComm_t comm) {
      ncclResult_t state = ncclSuccess,
                   code = ncclCommGetAsyncError(comm, &state);
      if (code == ncclSuccess)
        code = state;
      if (code == ncclSuccess || code == ncclInProgress)
        return std::nullopt;
      isRemote = code == ncclRemoteError;
      return std::string("NCCL: ") + ncclGetErrorString(code);
    }
    void abort(const std::optional<std::string> &reason) {
      std::lock_guard lock(mutex);
      why = reason;
      isAborted = true;
      // Each alone would wait for the device, which waits in the others.
      ncclGroupStart();
      for (ncclComm_t one : made)
        ncclCommAbort(one);
      ncclCommAbort(first);
      ncclGroupEnd();
    }
  };

  [[noreturn]] void throwAborted(const std::string &text) {
    bool missedHeartbeat = comms->isAborted && !comms->why;
    if (std::optional<std::string> failure; !missedHeartbeat &&
                                            options.peerFailure &&
                                            (failure = options.peerFailure())) {
      failedByPeer = true;
      throw PeerFailed{*failure};
    }
    if (comms->isRemote)
      throw PeerFailed{text};
    throw std::runtime_error(text);
  }

  /// A proof for more streams than there are holds for fewer messages at a
  /// time only; a send of NCCL waits for its receive.
  static bool needsPerEdge(const Program &program) {
    bool any = false, one = false, perEdge = false;
    for (const char *transport : program.transports) {
      std::string_view name = transport;
      any |= name != "data"; // Of messages it says nothing.
      one |= name == "stream" || name == "rendezvous";
      perEdge |= name.starts_with("stream-per-");
    }
    if (any && !one && !perEdge)
      throw std::runtime_error(
          std::string("the program is proven for `") + program.transports[0] +
          "`, whose sends do not wait as those of NCCL do: compile it with "
          "--transport=stream or --transport=stream-per-edge");
    return perEdge;
  }
  static bool hasMoves(const std::set<RankEdge> &edges, bool isMove) {
    return std::any_of(edges.begin(), edges.end(), [&](const RankEdge &edge) {
      return edge.isMove == isMove;
    });
  }

  /// Makes a communicator of the ranks with one colour; null with none. It
  /// blocks: once ranks have met, calls only launch.
  ncclComm_t newComm(int colour, milliseconds timeout) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    ncclComm_t &made = pending.emplace_back(nullptr);
    heartbeat();
    waitForAsync(ncclCommSplit(comms->first, colour, ownRank, &made, &config),
                 "ncclCommSplit", comms->first, timeout);
    if (made) {
      std::lock_guard lock(comms->mutex);
      comms->made.push_back(made);
    }
    return made;
  }
  NcclChannel *addChannel(ncclComm_t comm, bool perEdge) {
    return &all.emplace_back(NcclChannel{comm, cuda.newStream(true), perEdge});
  }

  /// A communicator for each direction of each pair of a round.
  void splitPerEdge(const std::vector<RankPair> &round,
                    const std::set<RankEdge> &fresh, milliseconds timeout) {
    for (bool isMove : {false, true})
      for (bool isUp : {true, false}) {
        auto edgeOf = [&](RankPair pair) {
          return isUp ? RankEdge{pair.first, pair.second, isMove}
                      : RankEdge{pair.second, pair.first, isMove};
        };
        bool any = false;
        int own = NCCL_SPLIT_NOCOLOR;
        for (size_t i = 0; i != round.size(); ++i) {
          if (!fresh.contains(edgeOf(round[i])))
            continue;
          any = true;
          if (isIn(round[i]))
            own = int(i);
        }
        if (!any)
          continue;
        ncclComm_t made = newComm(own, timeout);
        if (own != NCCL_SPLIT_NOCOLOR)
          perEdge[edgeOf(round[size_t(own)])] = addChannel(made, true);
      }
  }

  /// Sends a byte along each fresh edge of the round, one after another: both
  /// ends have them in one order.
  void warmUp(const std::vector<RankPair> &round,
              const std::set<RankEdge> &fresh, char *bytes,
              milliseconds timeout) {
    for (const RankEdge &edge : fresh) {
      ++bytes;
      bool isHere = std::any_of(round.begin(), round.end(), [&](RankPair pair) {
        return isIn(pair) && pair.first == std::min(edge.from, edge.to) &&
               pair.second == std::max(edge.from, edge.to);
      });
      if (!isHere)
        continue;
      heartbeat();
      NcclChannel &channel = channelOf(edge);
      if (int(edge.from) == ownRank)
        check(ncclSend(bytes, 1, ncclInt8, peerOn(channel, edge.to),
                       channel.comm, channel.stream),
              "ncclSend");
      else
        check(ncclRecv(bytes, 1, ncclInt8, peerOn(channel, edge.from),
                       channel.comm, channel.stream),
              "ncclRecv");
      synchronizeStream(channel.stream, timeout);
    }
  }
  bool isIn(RankPair pair) const {
    return int(pair.first) == ownRank || int(pair.second) == ownRank;
  }

  NcclChannel &channelOf(const RankEdge &edge) {
    return isPerEdge ? *perEdge.at(edge) : *shared[edge.isMove];
  }

  /// Waits until a call on a communicator that does not block has ended.
  void waitForAsync(ncclResult_t code, const char *what, ncclComm_t comm,
                    milliseconds timeout) {
    check(code, what);
    heartbeat();
    waitUntil(timeout, [&] {
      ncclResult_t state;
      check(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
      check(state, what);
      return state != ncclInProgress;
    });
  }

  char *newScratch(size_t size) {
    checkCuda(cudaMalloc(&scratch.emplace_back(), size), "cudaMalloc");
    return static_cast<char *>(scratch.back());
  }

  CudaPool &cuda;
  int ownRank = 0, numRanks = 0;
  cudaStream_t control = nullptr;
  std::deque<NcclChannel> all;
  bool isPerEdge = false;
  NcclChannel *shared[2] = {};               ///< Of messages, of what moves.
  std::map<RankEdge, NcclChannel *> perEdge; ///< Of this rank's edges.
  std::set<RankEdge> opened[2];              ///< Of all ranks; shared, apart.
  /// To free it earlier would wait for the device.
  std::vector<void *> scratch;
  std::deque<ncclComm_t> pending; ///< NCCL fills them, at a time of its own.
  std::shared_ptr<Comms> comms;
  Watchdog watchdog;
};
} // namespace ppcc::rt
