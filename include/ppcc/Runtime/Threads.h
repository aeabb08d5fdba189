// A thread a rank, on one machine. Threads that wait for long sleep.
#pragma once

#include "ppcc/Runtime/Channel.h"
#include "ppcc/Runtime/Engine.h"
#include "ppcc/Runtime/PollingWait.h"

namespace ppcc::rt {

/// The messages between the threads of one process. Values are moved, never
/// copied. The first failure wakes all ranks.
template <class Value> class ThreadNetwork {
public:
  explicit ThreadNetwork(uint32_t numRanks)
      : parkers(numRanks), allGather(numRanks) {}

  /// What a rank runs on, in one thread. A rank that gives it up before its
  /// program has ended counts as failed.
  class Endpoint : public ChannelEnd<Value> {
  public:
    Endpoint(ThreadNetwork &network, uint32_t rank)
        : ChannelEnd<Value>(network.channels, rank,
                            static_cast<uint32_t>(network.parkers.size())),
          network(network) {}
    Endpoint(const Endpoint &) = delete;
    Endpoint &operator=(const Endpoint &) = delete;
    ~Endpoint() {
      if (!ended)
        fail(concat("rank ", this->self, " has left"));
    }

    std::vector<std::string> gather(const std::string &text,
                                    milliseconds timeout) {
      return network.allGather.gather(this->self, text, timeout);
    }
    void send(uint32_t to, Message<Value> &&message) {
      ended = false;
      network.checkFailure();
      Channel<Value> &channel = this->channelTo(to);
      channel.push(std::move(message));
      network.unpark(to, channel.receiverSleeps);
    }
    void postReceive(uint32_t from, const Label &, size_t) {
      ended = false;
      if (!this->isRendezvous)
        return;
      Channel<Value> &channel = this->channelFrom(from);
      channel.post();
      network.unpark(from, channel.senderSleeps);
    }
    bool receive(uint32_t from, Message<Value> &into, milliseconds timeout) {
      Channel<Value> &channel = this->channelFrom(from);
      network.wait(this->self, channel.receiverSleeps, timeout,
                   [&] { return channel.hasMessage(); });
      channel.popInto(into);
      return true;
    }
    bool sendsMatched(uint32_t to, milliseconds timeout) {
      Channel<Value> &channel = this->channelTo(to);
      network.wait(this->self, channel.senderSleeps, timeout,
                   [&] { return channel.isMatched(); });
      return true;
    }
    void finish(milliseconds) { ended = true; }
    void fail(const std::string &text) {
      ended = true;
      network.fail(text);
    }

  private:
    ThreadNetwork &network;
    bool ended = false;
  };

private:
  static constexpr unsigned maxSpins = 64;

  /// Wakes a rank that sleeps.
  struct alignas(64) Parker {
    unsigned spins = maxSpins, waits = 0; ///< Of the rank alone.
    std::mutex mutex;
    std::condition_variable wakeUp;
  };

  /// Waits until `done`: looks a few times, giving way to other threads, then
  /// sleeps.
  template <class Done>
  void wait(uint32_t rank, std::atomic<bool> &sleeps, milliseconds timeout,
            Done done) {
    checkFailure();
    if (done() || spin(parkers[rank], done))
      return;
    Parker &parker = parkers[rank];
    std::unique_lock lock(parker.mutex);
    sleeps.store(true);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    bool inTime = parker.wakeUp.wait_for(
        lock, timeout, [&] { return done() || hasFailed.load(); });
    sleeps.store(false);
    if (!inTime)
      throw TimedOut();
    checkFailure();
  }
  /// Looks as long as that helps: where others want the processor, who gives
  /// way gets it back late, and who sleeps is woken at once.
  template <class Done> bool spin(Parker &parker, Done done) {
    if (parker.spins == 0 && ++parker.waits % 64 == 0)
      parker.spins = 1;
    if (parker.spins == 0)
      return false;
    int64_t start = coarseNow();
    for (unsigned spins = parker.spins; spins != 0; --spins) {
      std::this_thread::yield();
      if (coarseNow() != start)
        break;
      if (done()) {
        parker.spins = std::min(2 * parker.spins, maxSpins);
        return true;
      }
    }
    parker.spins /= 2;
    return done();
  }
  /// Behind what the rank may sleep for.
  void unpark(uint32_t rank, const std::atomic<bool> &sleeps) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleeps.load(std::memory_order_relaxed))
      unpark(rank);
  }
  [[gnu::noinline]] void unpark(uint32_t rank) {
    {
      std::lock_guard lock(parkers[rank].mutex);
    } // It sleeps, or is about to.
    parkers[rank].wakeUp.notify_one();
  }

  void fail(const std::string &text) {
    allGather.fail(text);
    hasFailed.store(true);
    for (uint32_t rank = 0; rank != parkers.size(); ++rank)
      unpark(rank);
  }
  void checkFailure() const {
    if (hasFailed.load(std::memory_order_relaxed))
      throw PeerFailed{allGather.firstFailure()};
  }

  /// Where all ranks say something, and hear what all say.
  class Meeting {
  public:
    explicit Meeting(uint32_t numRanks) : contributions(numRanks) {}

    std::vector<std::string> gather(uint32_t rank, const std::string &text,
                                    milliseconds timeout) {
      std::unique_lock lock(mutex);
      contributions[rank] = text;
      if (++arrived == contributions.size()) {
        arrived = 0;
        ++round;
        changed.notify_all();
        return gathered = contributions;
      }
      uint64_t now = round;
      if (!changed.wait_for(lock, timeout,
                            [&] { return round != now || failure; }))
        throw TimedOut();
      if (round == now)
        throw PeerFailed{*failure};
      // It stays until all have left, as the next round needs all.
      return gathered;
    }
    void fail(const std::string &text) {
      std::lock_guard lock(mutex);
      if (!failure)
        failure = text;
      changed.notify_all();
    }
    std::string firstFailure() const {
      std::lock_guard lock(mutex);
      return *failure;
    }

  private:
    mutable std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> contributions, gathered; ///< By rank.
    size_t arrived = 0;
    uint64_t round = 0;
    std::optional<std::string> failure; ///< Of the first rank that failed.
  };

  std::vector<Parker> parkers; ///< By rank.
  Meeting allGather;
  std::atomic<bool> hasFailed = false;
  ChannelTable<Value> channels;
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
