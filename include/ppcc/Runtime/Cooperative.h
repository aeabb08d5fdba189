// All ranks in one thread, in an order that is always the same: for tests, and
// to see that a program ends.
#pragma once

#include "ppcc/Runtime/Channel.h"
#include "ppcc/Runtime/Engine.h"

#include <deque>

namespace ppcc::rt {

/// The messages between the ranks of one thread. It knows which rank can go on.
template <class Value> class CooperativeNetwork {
public:
  explicit CooperativeNetwork(uint32_t numRanks) : size(numRanks) {}

  /// What a rank runs on.
  class Endpoint : public ChannelEnd<Value> {
  public:
    Endpoint(CooperativeNetwork &network, uint32_t rank)
        : ChannelEnd<Value>(network.channels, rank, network.size),
          network(network) {}

    [[gnu::always_inline]] inline void send(uint32_t to,
                                            Message<Value> &&message) {
      Channel<Value> &channel = this->channelTo(to);
      channel.push(std::move(message));
      network.wake(channel.receiverSleeps, to);
    }
    void postReceive(uint32_t from, const Label &, size_t) {
      if (!this->isRendezvous)
        return;
      Channel<Value> &channel = this->channelFrom(from);
      channel.post();
      network.wake(channel.senderSleeps, from);
    }
    [[gnu::always_inline]] inline bool
    receive(uint32_t from, Message<Value> &into, milliseconds) {
      Channel<Value> &channel = this->channelFrom(from);
      if (!channel.hasMessage())
        return sleep(channel.receiverSleeps);
      channel.popInto(into);
      return true;
    }
    bool sendsMatched(uint32_t to, milliseconds) {
      Channel<Value> &channel = this->channelTo(to);
      return channel.isMatched() || sleep(channel.senderSleeps);
    }
    void finish(milliseconds) {}
    void fail(const std::string &) {}

  private:
    static bool sleep(std::atomic<bool> &sleeps) {
      sleeps.store(true, std::memory_order_relaxed);
      return false;
    }

    CooperativeNetwork &network;
  };

  /// All ranks are to go on, where nothing is under way.
  void wakeAll() {
    for (uint32_t rank = 0; rank != size; ++rank)
      awake.push() = rank;
  }
  /// The rank that is to go on, after those that were woken before; none when
  /// no rank can.
  std::optional<uint32_t> nextRank() {
    if (awake.empty())
      return std::nullopt;
    return awake.take();
  }

private:
  /// Wakes a rank if it sleeps for what has just been done.
  void wake(std::atomic<bool> &sleeps, uint32_t rank) {
    if (!sleeps.load(std::memory_order_relaxed))
      return;
    sleeps.store(false, std::memory_order_relaxed);
    awake.push() = rank;
  }

  uint32_t size;
  ChannelTable<Value> channels;
  CircularQueue<uint32_t> awake;
};

/// All ranks of a job in this thread; `stages` holds the stage of each. Its
/// functions throw Error; then it is of no use any more, unless it is a
/// ProgramMismatch of link().
template <Stage S> class CooperativeSession {
public:
  CooperativeSession(const Program &program, std::span<S> stages,
                     const Options &options = {})
      : CooperativeSession(
            std::vector<const Program *>(stages.size(), &program), stages,
            options) {}
  /// The ranks bring a program each, which must be the same.
  CooperativeSession(const std::vector<const Program *> &programs,
                     std::span<S> stages, const Options &options = {})
      : network(static_cast<uint32_t>(stages.size())), stages(stages),
        options(options) {
    for (uint32_t rank = 0; rank != stages.size(); ++rank)
      endpoints.emplace_back(network, rank);
    link(programs);
  }

  /// Puts another program in the place of the last.
  void link(const Program &program) {
    link(std::vector<const Program *>(stages.size(), &program));
  }
  void link(const std::vector<const Program *> &programs) {
    runners.clear();
    for (uint32_t rank = 0; rank != stages.size(); ++rank)
      runners.emplace_back(*programs[rank], rank, stages[rank], endpoints[rank],
                           options);
    if (std::count(programs.begin(), programs.end(), programs.front()) !=
        std::ptrdiff_t(programs.size()))
      agree(programs);
    for (Runner &runner : runners)
      runner.link();
    hasRun = false;
  }

  /// Runs all ranks. Throws as soon as no rank can go on, with what each waits
  /// for.
  std::vector<Stats> step() {
    if (std::exchange(hasRun, true))
      for (Runner &runner : runners)
        runner.rewind();
    network.wakeAll();
    while (std::optional<uint32_t> rank = network.nextRank())
      runners[*rank].step();
    std::string stuck;
    for (const Runner &runner : runners)
      if (!runner.hasEnded())
        stuck += "\n  " + runner.describeWait();
    if (!stuck.empty())
      throw Error("no rank can go on:" + stuck);
    std::vector<Stats> stats;
    for (const Runner &runner : runners)
      stats.push_back(runner.stats());
    return stats;
  }

private:
  using Network = CooperativeNetwork<typename S::Value>;
  using Runner = RankRunner<S, typename Network::Endpoint>;

  void agree(const std::vector<const Program *> &programs) {
    std::string first = digestOf(*programs.front());
    for (uint32_t rank = 1; rank != programs.size(); ++rank)
      if (std::string other = digestOf(*programs[rank]); other != first) {
        runners.clear();
        throw Runner::disagreement(0, first, rank, other);
      }
  }

  Network network;
  std::span<S> stages;
  Options options;
  std::deque<typename Network::Endpoint> endpoints;
  std::deque<Runner> runners;
  bool hasRun = false;
};

/// Runs all ranks in this thread once; `stages` holds the stage of each. Throws
/// Error at the first failure, and as soon as no rank can go on.
template <Stage S>
std::vector<Stats> runCooperative(const Program &program, std::span<S> stages,
                                  const Options &options = {}) {
  checkStages(program, stages.size());
  return CooperativeSession<S>(program, stages, options).step();
}

} // namespace ppcc::rt
