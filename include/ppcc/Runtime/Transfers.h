// The messages that a library has under way, and the memory of those that came.
#pragma once

#include "ppcc/Runtime/CircularQueue.h"
#include "ppcc/Runtime/Error.h"
#include "ppcc/Runtime/Stage.h"

#include <algorithm>

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

  CircularQueue<Transfer> sends;
  /// Those of a source, which stay there until another one is asked for.
  CircularQueue<Transfer> &receives(uint32_t from) {
    if (from >= sources.size()) [[unlikely]]
      sources.resize(from + 1);
    return sources[from];
  }

  Transfer &newSend(uint32_t to) {
    Transfer &transfer = sends.push();
    transfer.peer = to;
    return transfer;
  }
  /// In memory of the pool if there is any.
  Transfer &newReceive(uint32_t from, const Label &label) {
    Transfer &transfer = receives(from).push();
    transfer.peer = from;
    transfer.message.label = label;
    maxInUse = std::max(maxInUse, ++inUse);
    if (!buffers.empty()) {
      replace(transfer.message.value, std::move(buffers.back()));
      buffers.pop_back();
    }
    return transfer;
  }
  /// The oldest receive of a source has ended, and its value is taken.
  void completeReceive(CircularQueue<Transfer> &receives) {
    clear(receives.front().message.value);
    receives.pop();
  }
  /// Ends the sends from the oldest as far as they are `done`; `end` gets their
  /// values.
  template <class Done, class End> void completeSends(Done done, End end) {
    while (!sends.empty() && done(sends.front().request)) {
      end(std::move(sends.front().message.value));
      clear(sends.front().message.value);
      sends.pop();
    }
  }
  /// Whether all sends to a rank are `done`.
  template <class Done> bool allSent(uint32_t to, Done done) {
    return sends.all(
        [&](Transfer &sent) { return sent.peer != to || done(sent.request); });
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
  std::vector<CircularQueue<Transfer>> sources;
  std::vector<Value> buffers; ///< The pool.
  size_t inUse = 0, maxInUse = 0;
};

} // namespace ppcc::rt
