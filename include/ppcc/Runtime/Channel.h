// The messages of one rank to another, where both are in one process.
#pragma once

#include "ppcc/Runtime/Values.h"

#include <deque>
#include <map>
#include <utility>

namespace ppcc::rt {

/// What was sent and not yet received, in order; and how many sends and
/// receives were posted. Values are moved.
template <class Value> class Channel {
public:
  void push(Message<Value> &&message) {
    messages.push_back(std::move(message));
    ++sent;
  }
  void post() { ++posted; }
  bool hasMessage() const { return !messages.empty(); }
  /// Whether the receives of all that was sent are posted.
  bool isMatched() const { return posted >= sent; }
  /// There must be one.
  void popInto(Message<Value> &message) {
    message = std::move(messages.front());
    messages.pop_front();
  }

private:
  std::deque<Message<Value>> messages;
  uint64_t sent = 0, posted = 0;
};

/// All channels of a network, by sender and receiver.
template <class Value>
using ChannelTable = std::map<std::pair<uint32_t, uint32_t>, Channel<Value>>;

} // namespace ppcc::rt
