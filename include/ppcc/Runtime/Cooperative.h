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
      wake(rank);
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
      network->wake(to);
    }
    void postReceive(uint32_t from, const Label &, size_t) {
      ++network->channel(from, rank).posted;
      network->wake(from);
    }
    bool receive(uint32_t from, Message<Value> &into,
                 std::chrono::milliseconds) {
      Channel &channel = network->channel(from, rank);
      if (channel.messages.empty())
        return false;
      into = channel.messages.pop();
      return true;
    }
    bool sendsMet(uint32_t to, std::chrono::milliseconds) {
      const Channel &channel = network->channel(rank, to);
      return channel.posted >= channel.sent;
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
    uint32_t rank = awake.pop();
    inboxes[rank].awake = false;
    return rank;
  }

private:
  struct Channel {
    uint32_t from;
    Fifo<Message<Value>> messages;
    uint64_t sent = 0, posted = 0;
  };
  struct Inbox {
    std::vector<Channel> channels; ///< A rank has few that send to it.
    bool awake = false;
  };

  Channel &channel(uint32_t from, uint32_t to) {
    std::vector<Channel> &channels = inboxes[to].channels;
    for (Channel &channel : channels)
      if (channel.from == from)
        return channel;
    channels.push_back({from, {}});
    return channels.back();
  }
  void wake(uint32_t rank) {
    if (std::exchange(inboxes[rank].awake, true))
      return;
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

  while (std::optional<uint32_t> rank = network.nextRank())
    while ((progress[*rank] = runners[*rank].step()) == Progress::Ran)
      ;

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
