// A thread a rank, on one machine. Threads that wait for long sleep.
#pragma once

#include "ppcc/Runtime/Await.h"
#include "ppcc/Runtime/Channel.h"
#include "ppcc/Runtime/Engine.h"

namespace ppcc::rt {

/// The messages between the threads of one process. Values are moved, never
/// copied. The first failure wakes all ranks.
template <class Value> class ThreadNetwork {
public:
  explicit ThreadNetwork(uint32_t numRanks)
      : bells(numRanks), meeting(numRanks) {}

  /// What a rank runs on, in one thread. A rank that gives it up before its
  /// program has ended counts as failed.
  class Endpoint : public ChannelEnd<Value> {
  public:
    Endpoint(ThreadNetwork &network, uint32_t rank)
        : ChannelEnd<Value>(network.channels, rank,
                            static_cast<uint32_t>(network.bells.size())),
          network(network) {}
    Endpoint(const Endpoint &) = delete;
    Endpoint &operator=(const Endpoint &) = delete;
    ~Endpoint() {
      if (!ended)
        fail(concat("rank ", this->self, " has left"));
    }

    std::vector<std::string> gather(const std::string &text,
                                    milliseconds patience) {
      return network.meeting.gather(this->self, text, patience);
    }
    void send(uint32_t to, Message<Value> &&message) {
      ended = false;
      network.checkFailure();
      Channel<Value> &channel = this->channelTo(to);
      channel.push(std::move(message));
      network.ring(to, channel.receiverSleeps);
    }
    void postReceive(uint32_t from, const Label &, size_t) {
      ended = false;
      if (!this->meets)
        return;
      Channel<Value> &channel = this->channelFrom(from);
      channel.post();
      network.ring(from, channel.senderSleeps);
    }
    bool receive(uint32_t from, Message<Value> &into, milliseconds patience) {
      Channel<Value> &channel = this->channelFrom(from);
      network.wait(this->self, channel.receiverSleeps, patience,
                   [&] { return channel.hasMessage(); });
      channel.popInto(into);
      return true;
    }
    bool sendsMet(uint32_t to, milliseconds patience) {
      Channel<Value> &channel = this->channelTo(to);
      network.wait(this->self, channel.senderSleeps, patience,
                   [&] { return channel.isMet(); });
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
  static constexpr unsigned mostLooks = 64;

  /// Wakes a rank that sleeps.
  struct alignas(64) Bell {
    unsigned looks = mostLooks, waits = 0; ///< Of the rank alone.
    std::mutex mutex;
    std::condition_variable rung;
  };

  /// Waits until `done`: looks a few times, giving way to other threads, then
  /// sleeps.
  template <class Done>
  void wait(uint32_t rank, std::atomic<bool> &sleeps, milliseconds patience,
            Done done) {
    checkFailure();
    if (done() || look(bells[rank], done))
      return;
    Bell &bell = bells[rank];
    std::unique_lock lock(bell.mutex);
    sleeps.store(true);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    bool inTime = bell.rung.wait_for(
        lock, patience, [&] { return done() || hasFailed.load(); });
    sleeps.store(false);
    if (!inTime)
      throw TimedOut();
    checkFailure();
  }
  /// Looks as long as that helps: where others want the processor, who gives
  /// way gets it back late, and who sleeps is woken at once.
  template <class Done> bool look(Bell &bell, Done done) {
    if (bell.looks == 0 && ++bell.waits % 64 == 0)
      bell.looks = 1;
    if (bell.looks == 0)
      return false;
    int64_t start = tick();
    for (unsigned looks = bell.looks; looks != 0; --looks) {
      std::this_thread::yield();
      if (tick() != start)
        break;
      if (done()) {
        bell.looks = std::min(2 * bell.looks, mostLooks);
        return true;
      }
    }
    bell.looks /= 2;
    return done();
  }
  /// Behind what the rank may sleep for.
  void ring(uint32_t rank, const std::atomic<bool> &sleeps) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleeps.load(std::memory_order_relaxed))
      ring(rank);
  }
  [[gnu::noinline]] void ring(uint32_t rank) {
    {
      std::lock_guard lock(bells[rank].mutex);
    } // It sleeps, or is about to.
    bells[rank].rung.notify_one();
  }

  void fail(const std::string &text) {
    meeting.fail(text);
    hasFailed.store(true);
    for (uint32_t rank = 0; rank != bells.size(); ++rank)
      ring(rank);
  }
  void checkFailure() const {
    if (hasFailed.load(std::memory_order_relaxed))
      throw PeerFailed{meeting.firstFailure()};
  }

  /// Where all ranks say something, and hear what all say.
  class Meeting {
  public:
    explicit Meeting(uint32_t numRanks) : coming(numRanks) {}

    std::vector<std::string> gather(uint32_t rank, const std::string &text,
                                    milliseconds patience) {
      std::unique_lock lock(mutex);
      coming[rank] = text;
      if (++here == coming.size()) {
        here = 0;
        ++round;
        changed.notify_all();
        return said = coming;
      }
      uint64_t now = round;
      if (!changed.wait_for(lock, patience,
                            [&] { return round != now || failure; }))
        throw TimedOut();
      if (round == now)
        throw PeerFailed{*failure};
      // It stays until all have left, as the next round needs all.
      return said;
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
    std::vector<std::string> coming, said; ///< By rank.
    size_t here = 0;
    uint64_t round = 0;
    std::optional<std::string> failure; ///< Of the first rank that failed.
  };

  std::vector<Bell> bells; ///< By rank.
  Meeting meeting;
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
  inThreads(stages.size(), [&](size_t i) {
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
