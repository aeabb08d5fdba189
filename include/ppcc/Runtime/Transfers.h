// The messages that a library has under way, and the memory of those that came.
#pragma once

#include "ppcc/Runtime/Circle.h"
#include "ppcc/Runtime/Error.h"
#include "ppcc/Runtime/Stage.h"

#include <algorithm>

namespace ppcc::rt {

/// A message under way, whose address the library knows.
template <class Value, class Request> struct Moving {
  Message<Value> message{};
  uint32_t peer = 0;
  Request request{};

  /// Makes room for so many bytes. Throws std::runtime_error.
  std::span<std::byte> room(size_t bytes) {
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
  using Moving = rt::Moving<Value, Request>;

  Circle<Moving> sends;
  /// Those of a source, which stay there until another one is asked for.
  Circle<Moving> &receives(uint32_t from) {
    if (from >= sources.size()) [[unlikely]]
      sources.resize(from + 1);
    return sources[from];
  }

  Moving &newSend(uint32_t to) {
    Moving &moving = sends.push();
    moving.peer = to;
    return moving;
  }
  /// In memory of the pool if there is any.
  Moving &newReceive(uint32_t from, const Label &label) {
    Moving &moving = receives(from).push();
    moving.peer = from;
    moving.message.label = label;
    mostLent = std::max(mostLent, ++lent);
    if (!buffers.empty()) {
      replace(moving.message.value, std::move(buffers.back()));
      buffers.pop_back();
    }
    return moving;
  }
  /// The oldest receive of a source has ended, and its value is taken.
  void endReceive(Circle<Moving> &receives) {
    clear(receives.front().message.value);
    receives.pop();
  }
  /// Ends the sends from the oldest as far as they are `done`; `end` gets their
  /// values.
  template <class Done, class End> void endSends(Done done, End end) {
    while (!sends.empty() && done(sends.front().request)) {
      end(std::move(sends.front().message.value));
      clear(sends.front().message.value);
      sends.pop();
    }
  }
  /// Whether all sends to a rank are `done`.
  template <class Done> bool sent(uint32_t to, Done done) {
    return sends.all(
        [&](Moving &sent) { return sent.peer != to || done(sent.request); });
  }

  /// What was received has been read.
  void recycle(Value &&value) {
    --lent;
    pool(std::move(value));
  }
  /// Memory to receive into.
  void pool(Value &&value) {
    if (buffers.size() + lent < mostLent && !Bytes<Value>::of(value).empty())
      buffers.push_back(std::move(value));
  }
  void clearPool() { buffers.clear(); }

private:
  std::vector<Circle<Moving>> sources;
  std::vector<Value> buffers; ///< The pool.
  size_t lent = 0, mostLent = 0;
};

} // namespace ppcc::rt
