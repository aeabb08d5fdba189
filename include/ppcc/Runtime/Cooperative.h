// All ranks in one thread, in an order that is always the same: for tests, and
// to see that a program ends.
#pragma once

#include "ppcc/Runtime/Engine.h"

#include <deque>

namespace ppcc::rt {

/// The messages between the ranks of one thread. It knows which rank can go on.
template <class Value> class CooperativeNetwork {
public:
  explicit CooperativeNetwork(uint32_t numRanks) : inboxes(numRanks) {
    for (uint32_t rank = 0; rank != numRanks; ++rank)
      awake.push(uint32_t(rank));
  }

  /// What a rank runs on.
  class Endpoint {
  public:
    Endpoint(CooperativeNetwork &network, uint32_t rank)
        : network(&network), rank(rank) {}

    uint32_t numRanks() const {
      return static_cast<uint32_t>(network->inboxes.size());
    }
    void send(uint32_t to, Message<Value> &&message) {
      Channel &channel = network->channel(rank, to);
      channel.messages.push(std::move(message));
      ++channel.sent;
      network->wake(to, Sleep::Message, rank);
    }
    void postReceive(uint32_t from, const Label &, size_t) {
      ++network->channel(from, rank).posted;
      network->wake(from, Sleep::Receive, rank);
    }
    bool receive(uint32_t from, Message<Value> &into,
                 std::chrono::milliseconds) {
      Channel &channel = network->channel(from, rank);
      if (channel.messages.empty())
        return network->sleep(rank, Sleep::Message, from);
      channel.messages.popInto(into);
      return true;
    }
    bool sendsMet(uint32_t to, std::chrono::milliseconds) {
      const Channel &channel = network->channel(rank, to);
      return channel.posted >= channel.sent ||
             network->sleep(rank, Sleep::Receive, to);
    }
    void finish(std::chrono::milliseconds) {}
    void fail(const std::string &) {}

  private:
    CooperativeNetwork *network;
    uint32_t rank;
  };

  /// The rank that is to go on, after those that were woken before; none when
  /// no rank can.
  std::optional<uint32_t> nextRank() {
    if (awake.empty())
      return std::nullopt;
    return awake.pop();
  }

private:
  struct Channel {
    uint32_t from;
    Fifo<Message<Value>> messages;
    uint64_t sent = 0, posted = 0;
  };
  /// What a rank waits for: a message, or the receive of what it sent.
  enum class Sleep : uint8_t { None, Message, Receive };
  struct Inbox {
    std::vector<Channel> channels; ///< A rank has few that send to it.
    Sleep sleep = Sleep::None;
    uint32_t partner = 0; ///< The rank that it waits for.
  };

  Channel &channel(uint32_t from, uint32_t to) {
    for (Channel &channel : inboxes[to].channels)
      if (channel.from == from)
        return channel;
    return addChannel(from, to);
  }
  [[gnu::cold]] Channel &addChannel(uint32_t from, uint32_t to) {
    inboxes[to].channels.push_back({from, {}});
    return inboxes[to].channels.back();
  }
  bool sleep(uint32_t rank, Sleep sleep, uint32_t partner) {
    inboxes[rank].sleep = sleep;
    inboxes[rank].partner = partner;
    return false;
  }
  /// Wakes a rank if this is what it waits for.
  void wake(uint32_t rank, Sleep sleep, uint32_t partner) {
    Inbox &inbox = inboxes[rank];
    if (inbox.sleep != sleep || inbox.partner != partner)
      return;
    inbox.sleep = Sleep::None;
    awake.push(std::move(rank));
  }

  std::vector<Inbox> inboxes;
  Fifo<uint32_t> awake;
};

/// Runs all ranks in this thread; `stages` holds the stage of each rank. Throws
/// Error at the first failure, and as soon as no rank can go on, with what each
/// waits for.
template <Stage S>
std::vector<Stats> runCooperative(const Program &program, std::span<S> stages,
                                  const Options &options = {}) {
  checkStages(program, stages.size());
  using Network = CooperativeNetwork<typename S::Value>;
  using Runner = RankRunner<S, typename Network::Endpoint>;
  using Progress = typename Runner::Progress;
  Network network(static_cast<uint32_t>(stages.size()));
  std::deque<typename Network::Endpoint> endpoints;
  std::deque<Runner> runners;
  std::vector<Stats> stats;
  std::vector<Progress> progress(stages.size(), Progress::Ran);
  for (uint32_t rank = 0; rank != stages.size(); ++rank)
    runners.emplace_back(program, rank, stages[rank],
                         endpoints.emplace_back(network, rank), options);

  while (std::optional<uint32_t> rank = network.nextRank()) {
    Runner &runner = runners[*rank];
    Progress last;
    while ((last = runner.step()) == Progress::Ran)
      ;
    progress[*rank] = last;
  }

  std::string stuck;
  for (size_t rank = 0; rank != runners.size(); ++rank)
    if (progress[rank] == Progress::Blocked)
      stuck += "\n  " + runners[rank].waitsFor();
  if (!stuck.empty())
    throw Error("no rank can go on:" + stuck);
  for (const Runner &runner : runners)
    stats.push_back(runner.stats());
  return stats;
}

} // namespace ppcc::rt
