// A thread a rank, on one machine. Waiting threads sleep.
#pragma once

#include "ppcc/Runtime/Engine.h"

#include <memory>

namespace ppcc::rt {

/// The messages between the threads of one process. Values are moved, never
/// copied. The first failure wakes all ranks.
template <class Value> class ThreadNetwork {
public:
  explicit ThreadNetwork(uint32_t numRanks) {
    for (uint32_t rank = 0; rank != numRanks; ++rank)
      inboxes.push_back(std::make_unique<Inbox>());
  }

  /// What a rank runs on, in one thread. A rank that gives it up before its
  /// program has ended counts as failed.
  class Endpoint {
  public:
    Endpoint(ThreadNetwork &network, uint32_t rank)
        : network(network), rank(rank) {}
    Endpoint(const Endpoint &) = delete;
    Endpoint &operator=(const Endpoint &) = delete;
    ~Endpoint() {
      if (!ended)
        fail("rank " + std::to_string(rank) + " has left");
    }

    uint32_t numRanks() const {
      return static_cast<uint32_t>(network.inboxes.size());
    }
    void send(uint32_t to, Message<Value> &&message) {
      Inbox &inbox = *network.inboxes[to];
      {
        std::lock_guard lock(inbox.mutex);
        inbox.checkFailure();
        Channel &channel = inbox.channel(rank);
        channel.messages.push(std::move(message));
        ++channel.sent;
      }
      inbox.changed.notify_all();
    }
    void postReceive(uint32_t from, const Label &, size_t) {
      Inbox &inbox = *network.inboxes[rank];
      bool awaited;
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
      Inbox &inbox = *network.inboxes[rank];
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
        const Channel &channel = inbox.channel(rank);
        return channel.posted >= channel.sent;
      });
      --inbox.sendersWaiting;
      return true;
    }
    void finish(std::chrono::milliseconds) { ended = true; }
    void fail(const std::string &text) {
      ended = true;
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
    uint32_t rank;
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

  std::vector<std::unique_ptr<Inbox>> inboxes;
};

/// Runs each rank in a thread of its own; `stages` holds the stage of each.
/// Returns when all have ended. Throws the Error of the rank that failed first.
template <Stage S>
std::vector<Stats> runThreads(const Program &program, std::span<S> stages,
                              const Options &options = {}) {
  checkStages(program, stages.size());
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
          stats[rank] = run(program, rank, stages[rank], endpoint, options);
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
