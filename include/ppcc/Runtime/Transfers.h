// The messages that a library has under way, the memory of those that came, and
// waits by tests, for what has no wait with a limit.
#pragma once

#include "ppcc/Runtime/Error.h"
#include "ppcc/Runtime/Stage.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace ppcc::rt {

/// A message under way, whose address the library knows.
template <class Value, class Request> struct Transfer {
  Message<Value> message{};
  uint32_t peer = 0;
  Request request{};

  /// Makes room for so many bytes. Throws std::runtime_error.
  std::span<std::byte> allocate(size_t bytes) {
    if (!Bytes<Value>::resize(message.value, bytes))
      throw std::runtime_error(
          concat("values have no size of ", bytes, " bytes"));
    return Bytes<Value>::of(message.value);
  }
};

/// All of one rank: its sends in their order, its receives by source, and a
/// pool of memory for receives that never becomes more than the receives that
/// are posted and not yet read at one time: the program's `receiveBuffers`.
template <class Value, class Request> class Transfers {
public:
  using Transfer = rt::Transfer<Value, Request>;

  std::deque<Transfer> sends;
  std::deque<Transfer> &receives(uint32_t from) { return sources[from]; }

  Transfer &newSend(uint32_t to) {
    Transfer &transfer = sends.emplace_back();
    transfer.peer = to;
    return transfer;
  }
  /// In memory of the pool if there is any.
  Transfer &newReceive(uint32_t from, const Label &label) {
    Transfer &transfer = receives(from).emplace_back();
    transfer.peer = from;
    transfer.message.label = label;
    maxInUse = std::max(maxInUse, ++inUse);
    if (!buffers.empty()) {
      transfer.message.value = std::move(buffers.back());
      buffers.pop_back();
    }
    return transfer;
  }
  /// Ends the sends from the oldest as far as they are `done`; `end` gets each.
  template <class Done, class End> void completeSends(Done done, End end) {
    while (!sends.empty() && done(sends.front().request)) {
      end(sends.front());
      sends.pop_front();
    }
  }
  /// Whether all sends to a rank are `done`.
  template <class Done> bool allSent(uint32_t to, Done done) {
    return std::ranges::all_of(sends, [&](Transfer &sent) {
      return sent.peer != to || done(sent.request);
    });
  }

  /// What was received has been read.
  void recycle(Value &&value) {
    --inUse;
    pool(std::move(value));
  }
  /// Memory to receive into.
  void pool(Value &&value) {
    if (buffers.size() + inUse < maxInUse && !Bytes<Value>::of(value).empty())
      buffers.push_back(std::move(value));
  }
  void clearPool() { buffers.clear(); }

private:
  std::map<uint32_t, std::deque<Transfer>> sources;
  std::vector<Value> buffers; ///< The pool.
  size_t inUse = 0, maxInUse = 0;
};

/// Waits until `done` is true: tests it often, gives way now and then, and
/// after some time pauses for 50 microseconds. Calls `listen` before it gives
/// way, which throws when there is nothing to wait for any more. Throws
/// TimedOut after `timeout`.
template <class Done, class Listen>
void waitUntil(milliseconds timeout, Done done, Listen checkPeerFailure) {
  if (done())
    return;
  using Clock = std::chrono::steady_clock;
  Clock::time_point start{};
  // Libraries may give way themselves in each test.
  for (unsigned tests = 1; !done(); ++tests) {
    if (tests % 64 != 0 && tests < 64 * 200)
      continue;
    checkPeerFailure();
    if (start == Clock::time_point())
      start = Clock::now();
    if (tests < 64 * 200)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (Clock::now() - start > timeout)
      throw TimedOut();
  }
}

/// The texts of the ranks, which were gathered one after another.
inline std::vector<std::string> splitEqually(const std::string &all,
                                             size_t size) {
  std::vector<std::string> texts;
  for (size_t at = 0; at != all.size(); at += size)
    texts.push_back(all.substr(at, size));
  return texts;
}

} // namespace ppcc::rt
