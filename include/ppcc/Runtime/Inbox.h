// What carries messages, as a rank sees it; and what other ranks send to it.
#pragma once

#include "ppcc/Runtime/ProgramCursor.h"
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

/// The receives of a rank that are posted, by the rank that sends. A message
/// that is not what its receive expects ends the run.
template <Stage S, Endpoint<typename S::Value> E> class Inbox {
public:
  using Value = typename S::Value;

  /// The recorder may be null.
  Inbox(ProgramCursor &cursor, S &stage, E &endpoint, const Options &options,
        Recorder *recorder)
      : cursor(cursor), stage(stage), endpoint(endpoint), options(options),
        recorder(recorder) {}

  /// The ranks that send, by their number.
  void link(const std::vector<uint32_t> &peers) {
    for (uint32_t peerIndex : peers)
      sources.push_back({peerIndex});
  }

  /// Posts the receive of what its label says, of `bytes` or of an unknown
  /// size.
  void post(ValueCell<Value> &held, uint32_t row, size_t bytes) {
    Source &source = sources[held.source];
    source.post(held);
    try {
      endpoint.postReceive(source.rank, held.label, bytes);
    } catch (...) {
      cursor.rethrowWaitError(source.rank, &held.label);
    }
    if (recorder)
      recorder->receivePosted(row, held.label.microbatch, source.rank);
  }

  /// Waits until the value is here; with its whole batch, as one call posted
  /// it. False: it is not.
  bool waitFor(ValueCell<Value> &held) {
    while (held.readers == 0)
      if (!completeFirst(sources[held.source]))
        return false;
    return !held.batch || waitForBatch(held);
  }
  /// Waits for all that is posted of a rank.
  bool waitForAll(uint32_t peerIndex) {
    while (sources[peerIndex].first)
      if (!completeFirst(sources[peerIndex]))
        return false;
    return true;
  }

  /// Throws Error where the stage says another size.
  void checkSize(const Label &label, Value &value) const {
    if constexpr (HasBytes<Value>) {
      size_t expected = label.isMove() ? 0 : stage.messageBytes(label);
      if (expected == 0)
        return;
      size_t size = Bytes<Value>::of(value).size();
      if (size != expected)
        cursor.fail(cursor.text(label), " has ", size, " bytes where ",
                    expected, " are expected");
    }
  }

private:
  /// A rank that sends to this one, and the receives posted for it, in order.
  struct Source {
    uint32_t rank;
    ValueCell<Value> *first = nullptr, *last = nullptr;
    std::vector<Message<Value>> early{}; ///< Messages before their turn.

    void post(ValueCell<Value> &held) {
      held.next = nullptr;
      (first ? last->next : first) = &held;
      last = &held;
    }
  };

  bool waitForBatch(ValueCell<Value> &held) {
    for (ValueCell<Value> *member = held.batch; member != &held;
         member = member->batch)
      while (member->readers == 0)
        if (!completeFirst(sources[member->source]))
          return false;
    for (ValueCell<Value> *member = &held; member;)
      member = std::exchange(member->batch, nullptr);
    return true;
  }

  /// Ends the oldest receive from a rank, or lays aside what came before it;
  /// false when nothing is here.
  bool completeFirst(Source &source) {
    ValueCell<Value> &held = *source.first;
    Label expected = held.label;
    if (recorder)
      recorder->waitBegins(source.rank);
    try {
      if (!(!source.early.empty() && takeEarly(source, held)) &&
          !endpoint.receive(source.rank, held, options.timeout))
        return cursor.blockedOn(source.rank, &held.label);
    } catch (...) {
      cursor.rethrowWaitError(source.rank, &held.label);
    }
    if (held.label != expected) {
      storeEarly(source, held, expected);
      return true;
    }
    if (recorder)
      recorder->received(source.rank);
    checkSize(expected, held.value);
    held.readers = 1;
    source.first = held.next;
    return true;
  }

  // Messages and what actions move have an order each; what comes before its
  // turn waits.

  void storeEarly(Source &source, ValueCell<Value> &held,
                  const Label &expected) {
    if (held.label.isMove() == expected.isMove())
      cursor.fail("rank ", source.rank, " sent ", cursor.text(held.label),
                  " where ", cursor.text(expected), " is received");
    source.early.push_back(std::move(held));
    held.label = expected;
  }
  bool takeEarly(Source &source, ValueCell<Value> &held) {
    for (auto early = source.early.begin(); early != source.early.end();
         ++early)
      if (early->label == held.label) {
        static_cast<Message<Value> &>(held) = std::move(*early);
        source.early.erase(early);
        return true;
      }
    return false;
  }

  ProgramCursor &cursor;
  S &stage;
  E &endpoint;
  const Options &options;
  Recorder *recorder;
  std::vector<Source> sources; ///< By the number of a partner.
};
} // namespace ppcc::rt
