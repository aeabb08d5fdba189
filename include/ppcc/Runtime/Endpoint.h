// What carries messages, as a rank sees it.
#pragma once

#include "ppcc/Runtime/Error.h"
#include "ppcc/Runtime/Stage.h"

#include <chrono>
#include <concepts>

namespace ppcc::rt {

/// finish() was longer than it may be, because of this message.
struct StalledAt : TimedOut {
  Label label;
};

/// One rank's end of a transport. Messages between two ranks arrive in the
/// order in which they are sent, in each direction by itself. What it may have
/// beside these: docs/adding-a-transport.md.
template <class T, class Value>
concept Endpoint =
    requires(T t, uint32_t rank, Message<Value> message, const Label &label,
             size_t bytes, milliseconds timeout, const std::string &text) {
      { t.numRanks() } -> std::convertible_to<uint32_t>;
      /// Posts a send, which may end at any later time.
      t.send(rank, std::move(message));
      /// Posts the next receive from a rank; `bytes` is 0 when unknown.
      t.postReceive(rank, label, bytes);
      /// Ends the oldest posted receive from a rank, of which `message` has the
      /// label; it gets the value, and the label if that is another. False: it
      /// is not here yet, come back later; only where all ranks share a thread.
      /// Throws TimedOut or PeerFailed; another exception says what is wrong
      /// with the message.
      { t.receive(rank, message, timeout) } -> std::same_as<bool>;
      /// Waits until all sends to a rank met their receives, as above.
      { t.sendsMatched(rank, timeout) } -> std::same_as<bool>;
      /// Waits until all sends have ended; the rank has nothing more to do.
      t.finish(timeout);
      /// Tells the other ranks that this one has failed.
      t.fail(text);
    };

} // namespace ppcc::rt
