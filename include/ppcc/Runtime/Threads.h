// A thread a rank, on one machine.
#pragma once

#include "ppcc/Runtime/Channel.h"
#include "ppcc/Runtime/Engine.h"

namespace ppcc::rt {

/// The messages between the threads of one process, under one lock. The first
/// failure wakes all ranks.
template <class Value> class ThreadNetwork {
public:
  explicit ThreadNetwork(uint32_t numRanks)
      : changed(numRanks), contributions(numRanks) {}

  /// What a rank runs on, in one thread. A rank that gives it up before its
  /// program has ended counts as failed.
  class Endpoint {
  public:
    Endpoint(ThreadNetwork &network, uint32_t rank)
        : network(network), self(rank) {}
    Endpoint(const Endpoint &) = delete;
    Endpoint &operator=(const Endpoint &) = delete;
    ~Endpoint() {
      if (!ended)
        fail(concat("rank ", self, " has left"));
    }

    uint32_t rank() const { return self; }
    uint32_t numRanks() const {
      return static_cast<uint32_t>(network.changed.size());
    }
    /// What each rank says. Collective.
    std::vector<std::string> gather(const std::string &text,
                                    milliseconds timeout) {
      return network.gather(self, text, timeout);
    }
    void send(uint32_t to, Message<Value> &&message) {
      ended = false;
      std::lock_guard lock(network.mutex);
      network.checkFailure();
      network.channels[{self, to}].push(std::move(message));
      network.changed[to].notify_one();
    }
    void postReceive(uint32_t from, const Label &, size_t) {
      ended = false;
      std::lock_guard lock(network.mutex);
      network.channels[{from, self}].post();
      network.changed[from].notify_one();
    }
    bool receive(uint32_t from, Message<Value> &into, milliseconds timeout) {
      std::unique_lock lock(network.mutex);
      Channel<Value> &channel = network.channels[{from, self}];
      network.wait(lock, self, timeout, [&] { return channel.hasMessage(); });
      channel.popInto(into);
      return true;
    }
    bool sendsMatched(uint32_t to, milliseconds timeout) {
      std::unique_lock lock(network.mutex);
      Channel<Value> &channel = network.channels[{self, to}];
      network.wait(lock, self, timeout, [&] { return channel.isMatched(); });
      return true;
    }
    void finish(milliseconds) { ended = true; }
    void fail(const std::string &text) {
      ended = true;
      std::lock_guard lock(network.mutex);
      if (!network.failure)
        network.failure = text;
      network.notifyAll();
    }

  private:
    ThreadNetwork &network;
    uint32_t self;
    bool ended = false;
  };

private:
  /// Sleeps until `done`, or until a rank has failed.
  template <class Done>
  void wait(std::unique_lock<std::mutex> &lock, uint32_t rank,
            milliseconds timeout, Done done) {
    if (!changed[rank].wait_for(lock, timeout,
                                [&] { return failure || done(); }))
      throw TimedOut();
    if (!done()) // A rank that fails later takes back nothing.
      checkFailure();
  }
  void checkFailure() const {
    if (failure)
      throw PeerFailed{*failure};
  }
  void notifyAll() {
    for (std::condition_variable &rank : changed)
      rank.notify_one();
  }

  std::vector<std::string> gather(uint32_t rank, const std::string &text,
                                  milliseconds timeout) {
    std::unique_lock lock(mutex);
    contributions[rank] = text;
    if (++arrived == contributions.size()) {
      arrived = 0;
      ++round;
      gathered = contributions;
      notifyAll();
      return gathered;
    }
    wait(lock, rank, timeout, [&, own = round] { return round != own; });
    // It stays until all have left, as the next round needs all.
    return gathered;
  }

  std::mutex mutex;                             ///< Of all.
  std::vector<std::condition_variable> changed; ///< By the rank that waits.
  ChannelTable<Value> channels;
  std::vector<std::string> contributions, gathered; ///< By rank.
  size_t arrived = 0;
  uint64_t round = 0;
  std::optional<std::string> failure; ///< Of the first rank that failed.
};

/// Runs each rank in a thread of its own; `stages` holds the stage of each.
/// Returns when all have ended. Throws the Error of the rank that failed first.
template <Stage S>
std::vector<Stats> runThreads(const Program &program, std::span<S> stages,
                              const Options &options = {}) {
  checkStages(program, stages.size());
  std::string digest = digestOf(program);
  using Network = ThreadNetwork<typename S::Value>;
  Network network(static_cast<uint32_t>(stages.size()));
  std::vector<Stats> stats(stages.size());
  runInThreads(stages.size(), [&](size_t i) {
    auto rank = static_cast<uint32_t>(i);
    typename Network::Endpoint endpoint(network, rank);
    try {
      stats[i] =
          Session(program, rank, stages[i], endpoint, options, digest).step();
    } catch (const PeerError &) {
      // The other rank's own error tells more.
    }
  });
  return stats;
}

} // namespace ppcc::rt
