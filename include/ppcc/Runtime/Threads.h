// A thread a rank, on one machine. Waiting threads sleep.
#pragma once

#include "ppcc/Runtime/Engine.h"

#include <memory>

namespace ppcc::rt {

/// The messages between the threads of one process. Values are moved, never
/// copied. The first failure wakes all ranks.
template <class Value> class ThreadNetwork {
public:
  explicit ThreadNetwork(uint32_t numRanks) : meeting(numRanks) {
    for (uint32_t rank = 0; rank != numRanks; ++rank)
      inboxes.push_back(std::make_unique<Inbox>());
  }

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
        fail("rank " + std::to_string(self) + " has left");
    }

    uint32_t rank() const { return self; }
    uint32_t numRanks() const {
      return static_cast<uint32_t>(network.inboxes.size());
    }
    std::vector<std::string> gather(const std::string &text,
                                    std::chrono::milliseconds patience) {
      return network.meeting.gather(self, text, patience);
    }
    void send(uint32_t to, Message<Value> &&message) {
      Inbox &inbox = *network.inboxes[to];
      ended = false;
      {
        std::lock_guard lock(inbox.mutex);
        inbox.checkFailure();
        Channel &channel = inbox.channel(self);
        channel.messages.push(std::move(message));
        ++channel.sent;
      }
      inbox.changed.notify_all();
    }
    void postReceive(uint32_t from, const Label &, size_t) {
      Inbox &inbox = *network.inboxes[self];
      bool awaited;
      ended = false;
      {
        std::lock_guard lock(inbox.mutex);
        ++inbox.channel(from).posted;
        awaited = inbox.sendersWaiting != 0;
      }
      if (awaited)
        inbox.changed.notify_all();
    }
    bool receive(uint32_t from, Message<Value> &into,
                 std::chrono::milliseconds patience) {
      Inbox &inbox = *network.inboxes[self];
      std::unique_lock lock(inbox.mutex);
      inbox.wait(lock, patience,
                 [&] { return !inbox.channel(from).messages.empty(); });
      into = inbox.channel(from).messages.pop();
      return true;
    }
    bool sendsMet(uint32_t to, std::chrono::milliseconds patience) {
      Inbox &inbox = *network.inboxes[to];
      std::unique_lock lock(inbox.mutex);
      ++inbox.sendersWaiting;
      inbox.wait(lock, patience, [&] {
        const Channel &channel = inbox.channel(self);
        return channel.posted >= channel.sent;
      });
      --inbox.sendersWaiting;
      return true;
    }
    void finish(std::chrono::milliseconds) { ended = true; }
    void fail(const std::string &text) {
      ended = true;
      network.meeting.fail(text);
      for (std::unique_ptr<Inbox> &inbox : network.inboxes) {
        {
          std::lock_guard lock(inbox->mutex);
          if (inbox->failure.empty())
            inbox->failure = text;
        }
        inbox->changed.notify_all();
      }
    }

  private:
    ThreadNetwork &network;
    uint32_t self;
    bool ended = false;
  };

private:
  struct Channel {
    uint32_t from;
    Fifo<Message<Value>> messages;
    uint64_t sent = 0, posted = 0;
  };

  /// What is on its way to a rank.
  struct Inbox {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Channel> channels; ///< A rank has few that send to it.
    std::string failure;           ///< Of the first rank that failed.
    uint32_t sendersWaiting = 0;

    Channel &channel(uint32_t from) {
      for (Channel &channel : channels)
        if (channel.from == from)
          return channel;
      channels.push_back({from, {}});
      return channels.back();
    }
    template <class Done>
    void wait(std::unique_lock<std::mutex> &lock,
              std::chrono::milliseconds patience, Done done) {
      checkFailure();
      if (done())
        return;
      bool inTime = changed.wait_for(
          lock, patience, [&] { return done() || !failure.empty(); });
      if (!inTime)
        throw TimedOut();
      checkFailure();
    }
    void checkFailure() const {
      if (!failure.empty())
        throw PeerFailed{failure};
    }
  };

  /// Where all ranks say something, and hear what all say.
  class Meeting {
  public:
    explicit Meeting(uint32_t numRanks) : coming(numRanks) {}

    std::vector<std::string> gather(uint32_t rank, const std::string &text,
                                    std::chrono::milliseconds patience) {
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

  private:
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::string> coming, said; ///< By rank.
    size_t here = 0;
    uint64_t round = 0;
    std::optional<std::string> failure; ///< Of the first rank that failed.
  };

  std::vector<std::unique_ptr<Inbox>> inboxes;
  Meeting meeting;
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
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (uint32_t rank = 0; rank != stages.size(); ++rank)
      threads.emplace_back([&, rank] {
        typename Network::Endpoint endpoint(network, rank);
        try {
          stats[rank] =
              Session(program, rank, stages[rank], endpoint, options, digest)
                  .step();
        } catch (const PeerError &) {
          // The other rank's own error tells more.
        } catch (...) {
          std::lock_guard lock(mutex);
          if (!first)
            first = std::current_exception();
        }
      });
  }
  if (first)
    std::rethrow_exception(first);
  return stats;
}

} // namespace ppcc::rt
