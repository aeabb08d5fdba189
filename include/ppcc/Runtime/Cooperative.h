// All ranks in one thread, in an order that is always the same: for tests, and
// to see that a program ends.
#pragma once

#include "ppcc/Runtime/Channel.h"
#include "ppcc/Runtime/Engine.h"

#include <deque>

namespace ppcc::rt {

/// The messages between the ranks of one thread.
template <class Value> class CooperativeNetwork {
public:
  explicit CooperativeNetwork(uint32_t numRanks) : size(numRanks) {}

  /// What a rank runs on.
  class Endpoint {
  public:
    Endpoint(CooperativeNetwork &network, uint32_t rank)
        : network(network), self(rank) {}

    uint32_t rank() const { return self; }
    uint32_t numRanks() const { return network.size; }
    void send(uint32_t to, Message<Value> &&message) {
      network.channels[{self, to}].push(std::move(message));
      ++network.events;
    }
    void postReceive(uint32_t from, const Label &, size_t) {
      network.channels[{from, self}].post();
      ++network.events;
    }
    bool receive(uint32_t from, Message<Value> &into, milliseconds) {
      Channel<Value> &channel = network.channels[{from, self}];
      if (!channel.hasMessage())
        return false;
      channel.popInto(into);
      return true;
    }
    bool sendsMatched(uint32_t to, milliseconds) {
      return network.channels[{self, to}].isMatched();
    }
    void finish(milliseconds) {}
    void fail(const std::string &) {}

  private:
    CooperativeNetwork &network;
    uint32_t self;
  };

  /// Sends and receives that were posted: what a blocked rank may wait for.
  uint64_t numEvents() const { return events; }

private:
  uint32_t size;
  uint64_t events = 0;
  ChannelTable<Value> channels;
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
  }

  /// Runs all ranks. Throws as soon as no rank can go on, with what each waits
  /// for.
  std::vector<Stats> step() {
    for (Runner &runner : runners)
      runner.rewind();
    // In rounds, until one passes in which nobody does what others wait for.
    uint64_t before;
    do {
      before = network.numEvents();
      for (Runner &runner : runners)
        if (!runner.hasEnded())
          runner.step();
    } while (network.numEvents() != before);
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
