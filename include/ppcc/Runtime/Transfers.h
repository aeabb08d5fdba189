// The messages that a library has under way, and the memory of those that came.
#pragma once

#include "ppcc/Runtime/Fifo.h"
#include "ppcc/Runtime/Stage.h"

#include <algorithm>
#include <memory>

namespace ppcc::rt {

/// A message under way. It keeps its address, which the library knows.
template <class Value, class Request> struct Moving {
  Message<Value> message{};
  uint32_t peer = 0;
  Request request{};
};

/// All of one rank: its sends in their order, its receives by source, and a
/// pool of memory for receives that never becomes more than the receives that
/// are posted and not yet read at one time: the program's `receiveBuffers`.
template <class Value, class Request> class Transfers {
public:
  using Transfer = std::unique_ptr<Moving<Value, Request>>;

  Fifo<Transfer> sends;
  FifoByRank<Transfer> receives;

  Transfer fresh(uint32_t peer) {
    Transfer transfer;
    if (unused.empty()) {
      transfer = std::make_unique<Moving<Value, Request>>();
    } else {
      transfer = std::move(unused.back());
      unused.pop_back();
    }
    transfer->peer = peer;
    return transfer;
  }
  /// One of a receive, in memory of the pool if there is any.
  Transfer freshReceive(uint32_t from, const Label &label) {
    Transfer transfer = fresh(from);
    transfer->message.label = label;
    mostLent = std::max(mostLent, ++lent);
    if (!buffers.empty()) {
      transfer->message.value = std::move(buffers.back());
      buffers.pop_back();
    }
    return transfer;
  }

  /// It has ended; its value goes.
  void drop(Transfer transfer) {
    clear(transfer->message.value);
    unused.push_back(std::move(transfer));
  }
  /// A send has ended; its value can be received into.
  void reuse(Transfer transfer) {
    pool(std::move(transfer->message.value));
    clear(transfer->message.value);
    unused.push_back(std::move(transfer));
  }
  /// What was received has been read.
  void recycle(Value &&value) {
    --lent;
    pool(std::move(value));
  }

  /// Ends the sends from the oldest as far as they are `done`.
  template <class Done, class End> void endSends(Done done, End end) {
    while (!sends.empty() && done(sends.front()->request))
      end(sends.pop());
  }
  /// Whether all sends to a rank are `done`.
  template <class Done> bool sent(uint32_t to, Done done) {
    for (size_t i = 0; i != sends.size(); ++i)
      if (sends[i]->peer == to && !done(sends[i]->request))
        return false;
    return true;
  }
  /// Gives up all that is under way, each to `end`.
  template <class End> void abandon(End end) {
    while (!sends.empty())
      end(sends.pop());
    receives.forEach([&](Fifo<Transfer> &posted) {
      while (!posted.empty())
        end(posted.pop());
    });
  }
  void clearPool() { buffers.clear(); }

private:
  void pool(Value &&value) {
    if (buffers.size() + lent < mostLent && !Bytes<Value>::of(value).empty())
      buffers.push_back(std::move(value));
  }

  std::vector<Transfer> unused;
  std::vector<Value> buffers; ///< The pool.
  size_t lent = 0, mostLent = 0;
};

} // namespace ppcc::rt
