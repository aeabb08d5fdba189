// How a program is to be run, and notes of when each rank did what.
#pragma once

#include "ppcc/Runtime/Error.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace ppcc::rt {

/// An action that was done, in 32 bytes. Times are nanoseconds of a steady
/// clock.
struct TraceEvent {
  /// The end of what has begun and not ended.
  static constexpr int64_t open = INT64_MIN;

  int64_t start;  ///< Of a message: when it was posted.
  int64_t end;    ///< Of a send that nobody waits for: when it had been posted.
  int64_t waited; ///< How long before its end the rank began to wait for it.
  uint32_t row;   ///< In the rank's list, which says all but the microbatch.
  uint32_t microbatch;
};
static_assert(sizeof(TraceEvent) == 32);

/// The events of one rank, in the order in which they began.
class Recorder {
public:
  static int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  /// Forgets the last run and takes the memory for the next: beside it 4 bytes
  /// for each message under way. `together`: members of groups run at the same
  /// time.
  void begin(const RankProgram &list, bool concurrent) {
    uint64_t total = 0;
    for (const Segment &segment : list.segments)
      total += uint64_t(segment.rows) * segment.count;
    events.clear();
    events.reserve(std::min(total, maxReserved));
    peers.clear();
    isConcurrent = concurrent;
  }

  void computed(uint64_t row, uint32_t microbatch, int64_t start, int64_t end) {
    add(row, microbatch, start, end);
  }
  /// A send to a rank; `open`: sendsMatched() will say when it ends.
  void sent(uint64_t row, uint32_t microbatch, uint32_t to, int64_t start,
            bool open) {
    if (open)
      peer(to).sends.push_back(static_cast<uint32_t>(events.size()));
    add(row, microbatch, start, now());
  }
  void sendsMatched(uint32_t to) {
    int64_t end = now();
    for (uint32_t send : std::exchange(peer(to).sends, {}))
      events[send].end = end;
  }
  void receivePosted(uint64_t row, uint32_t microbatch, uint32_t from) {
    peer(from).receives.push_back(static_cast<uint32_t>(events.size()));
    add(row, microbatch, now(), TraceEvent::open);
  }
  /// The rank begins to wait for the oldest receive from another, or goes on
  /// waiting.
  void waitBegins(uint32_t from) {
    TraceEvent &event = events[peer(from).receives.front()];
    if (event.waited == 0)
      event.waited = now();
  }
  void received(uint32_t from) {
    std::deque<uint32_t> &receives = peer(from).receives;
    TraceEvent &event = events[receives.front()];
    receives.pop_front();
    event.end = now();
    event.waited = event.end - event.waited;
  }

  const std::vector<TraceEvent> &all() const { return events; }
  bool concurrent() const { return isConcurrent; }
  /// What another process recorded; its clock is `ahead` of this one.
  void replaceEvents(std::vector<TraceEvent> &&others, bool concurrent,
                     int64_t ahead) {
    events = std::move(others);
    isConcurrent = concurrent;
    for (TraceEvent &event : events) {
      event.start -= ahead;
      if (event.end != TraceEvent::open)
        event.end -= ahead;
    }
  }

private:
  /// What a damaged program asks for is not taken at once.
  static constexpr uint64_t maxReserved = uint64_t(1) << 24;

  struct Peer {
    uint32_t rank;
    std::vector<uint32_t> sends;   ///< Those under way, as places in events,
    std::deque<uint32_t> receives; ///< from the oldest on.
  };

  void add(uint64_t row, uint32_t microbatch, int64_t start, int64_t end) {
    events.push_back({start, end, 0, static_cast<uint32_t>(row), microbatch});
  }
  Peer &peer(uint32_t rank) {
    for (Peer &peer : peers)
      if (peer.rank == rank)
        return peer;
    return peers.emplace_back(Peer{rank, {}, {}});
  }

  std::vector<TraceEvent> events;
  std::vector<Peer> peers; ///< A rank has few.
  bool isConcurrent = false;
};

/// What happened in a run. Give it to the run in Options, then to writeTrace()
/// (Trace.h); a second run forgets the first. Where each process runs a rank it
/// has one for all ranks, of which it fills its own.
class Trace {
public:
  explicit Trace(uint32_t numRanks) : ranks(numRanks) {}

  uint32_t numRanks() const { return static_cast<uint32_t>(ranks.size()); }
  Recorder &rank(uint32_t number) { return ranks[number].recorder; }
  const Recorder &rank(uint32_t number) const { return ranks[number].recorder; }

private:
  struct alignas(64) Padded { ///< A thread a rank writes it.
    Recorder recorder;
  };
  std::vector<Padded> ranks;
};

/// When a rank waits for its messages.
enum class WaitPolicy : uint8_t {
  /// For a receive before the action that reads it, for a send at the end.
  Posted,
  /// For both where they stand; a send ends when its receive is posted. This is
  /// the transport that the compiler calls `rendezvous`.
  Rendezvous,
};

/// How the members of an overlap group run.
enum class Overlap : uint8_t {
  Serial,
  /// In threads of their own: the stage must allow calls at the same time for
  /// different stages or microbatches.
  Concurrent,
};

struct Options {
  WaitPolicy waitPolicy = WaitPolicy::Posted;
  Overlap overlap = Overlap::Serial;
  /// The limit of one wait for another rank.
  milliseconds timeout = std::chrono::minutes(10);
  /// Notes when what is done, if there is one.
  Trace *trace = nullptr;
};

} // namespace ppcc::rt
