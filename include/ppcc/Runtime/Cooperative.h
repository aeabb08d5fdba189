// All ranks in one thread, in an order that is always the same: for tests, and
// to see that a program ends.
#pragma once

#include "ppcc/Runtime/Engine.h"

#include <deque>

namespace ppcc::rt {

/// The messages between the ranks of one thread. It knows which rank can go on.
template <class Value> class CooperativeNetwork {
public:
  explicit CooperativeNetwork(uint32_t numRanks) : inboxes(numRanks) {}

  /// What a rank runs on.
  class Endpoint {
  public:
    Endpoint(CooperativeNetwork &network, uint32_t rank)
        : network(&network), self(rank) {}

    uint32_t rank() const { return self; }

    uint32_t numRanks() const {
      return static_cast<uint32_t>(network->inboxes.size());
    }
    void send(uint32_t to, Message<Value> &&message) {
      Channel &channel = network->channel(self, to);
      channel.messages.push(std::move(message));
      ++channel.sent;
      network->wake(to, Sleep::Message, self);
    }
    void postReceive(uint32_t from, const Label &, size_t) {
      ++network->channel(from, self).posted;
      network->wake(from, Sleep::Receive, self);
    }
    bool receive(uint32_t from, Message<Value> &into,
                 std::chrono::milliseconds) {
      Channel &channel = network->channel(from, self);
      if (channel.messages.empty())
        return network->sleep(self, Sleep::Message, from);
      channel.messages.popInto(into);
      return true;
    }
    bool sendsMet(uint32_t to, std::chrono::milliseconds) {
      const Channel &channel = network->channel(self, to);
      return channel.posted >= channel.sent ||
             network->sleep(self, Sleep::Receive, to);
    }
    void finish(std::chrono::milliseconds) {}
    void fail(const std::string &) {}

  private:
    CooperativeNetwork *network;
    uint32_t self;
  };

  /// All ranks are to go on, where nothing is under way.
  void wakeAll() {
    for (uint32_t rank = 0; rank != inboxes.size(); ++rank)
      awake.push(uint32_t(rank));
  }
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

/// All ranks of a job in this thread; `stages` holds the stage of each. Its
/// functions throw Error; then it is of no use any more, unless it is a
/// Disagreement of link().
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
    hasRun = false;
  }

  /// Runs all ranks. Throws as soon as no rank can go on, with what each waits
  /// for.
  std::vector<Stats> step() {
    using Progress = typename Runner::Progress;
    if (std::exchange(hasRun, true))
      for (Runner &runner : runners)
        runner.rewind();
    std::vector<Progress> progress(stages.size(), Progress::Ran);
    network.wakeAll();
    while (std::optional<uint32_t> rank = network.nextRank()) {
      Progress last;
      while ((last = runners[*rank].step()) == Progress::Ran)
        ;
      progress[*rank] = last;
    }
    std::string stuck;
    for (size_t rank = 0; rank != runners.size(); ++rank)
      if (progress[rank] == Progress::Blocked)
        stuck += "\n  " + runners[rank].waitsFor();
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
