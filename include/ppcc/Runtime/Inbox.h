// What other ranks send to a rank.
#pragma once

#include "ppcc/Runtime/Endpoint.h"
#include "ppcc/Runtime/Position.h"

namespace ppcc::rt {

/// The receives of a rank that are posted, by the rank that sends. A message
/// that is not what its receive expects ends the run.
template <Stage S, Endpoint<typename S::Value> E> class Inbox {
public:
  using Value = typename S::Value;

  Inbox(Position &position, S &stage, E &endpoint, const Options &options)
      : position(position), stage(stage), endpoint(endpoint), options(options) {
  }

  /// The ranks that send, by their number.
  void link(const std::vector<uint32_t> &partners) {
    for (uint32_t partner : partners)
      sources.push_back({partner});
  }

  /// Posts the receive of what its label says, of `bytes` or of an unknown
  /// size. A recorder notes it, if there is one.
  [[gnu::always_inline]] inline void post(Held<Value> &held, uint32_t row,
                                          size_t bytes, Recorder *recorder) {
    Source &source = sources[held.source];
    source.post(held);
    try {
      endpoint.postReceive(source.rank, held.label, bytes);
    } catch (...) {
      position.failToWait(source.rank, &held.label);
    }
    if (recorder)
      recorder->receivePosted(row, held.label.microbatch, source.rank);
  }

  /// Waits until the value is here; with its whole batch, as one call posted
  /// it. False: it is not.
  [[gnu::always_inline]] inline bool await(Held<Value> &held,
                                           Recorder *recorder) {
    while (held.readers == 0)
      if (!endFirst(sources[held.source], recorder))
        return false;
    return !held.batch || awaitBatch(held, recorder);
  }
  /// Waits for all that is posted of a rank.
  bool awaitAll(uint32_t partner, Recorder *recorder) {
    while (sources[partner].first)
      if (!endFirst(sources[partner], recorder))
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
        position.fail(position.text(label), " has ", size, " bytes where ",
                      expected, " are expected");
    }
  }

private:
  /// A rank that sends to this one, and the receives posted for it, in order.
  struct Source {
    uint32_t rank;
    Held<Value> *first = nullptr, *last = nullptr;
    std::vector<Message<Value>> early{}; ///< Messages before their turn.

    void post(Held<Value> &held) {
      held.next = nullptr;
      (first ? last->next : first) = &held;
      last = &held;
    }
  };

  bool awaitBatch(Held<Value> &held, Recorder *recorder) {
    for (Held<Value> *member = held.batch; member != &held;
         member = member->batch)
      while (member->readers == 0)
        if (!endFirst(sources[member->source], recorder))
          return false;
    for (Held<Value> *member = &held; member;)
      member = std::exchange(member->batch, nullptr);
    return true;
  }

  /// Ends the oldest receive from a rank, or lays aside what came before it;
  /// false when nothing is here.
  [[gnu::always_inline]] inline bool endFirst(Source &source,
                                              Recorder *recorder) {
    Held<Value> &held = *source.first;
    Label expected = held.label;
    if (recorder)
      recorder->awaits(source.rank);
    try {
      if (!(!source.early.empty() && wasEarly(source, held)) &&
          !endpoint.receive(source.rank, held, options.patience))
        return position.blockOn(source.rank, &held.label);
    } catch (...) {
      position.failToWait(source.rank, &held.label);
    }
    if (recorder)
      recorder->received(source.rank);
    if (held.label != expected) [[unlikely]] {
      layAside(source, held, expected);
      return true;
    }
    checkSize(expected, held.value);
    held.readers = 1;
    source.first = held.next;
    return true;
  }

  // Messages and what actions move have an order each; what comes before its
  // turn waits.

  [[gnu::cold, gnu::noinline]] void layAside(Source &source, Held<Value> &held,
                                             const Label &expected) {
    if (held.label.isMove() == expected.isMove())
      position.fail("rank ", source.rank, " sent ", position.text(held.label),
                    " where ", position.text(expected), " is received");
    source.early.push_back(std::move(held));
    held.label = expected;
  }
  [[gnu::cold, gnu::noinline]] bool wasEarly(Source &source,
                                             Held<Value> &held) {
    for (auto early = source.early.begin(); early != source.early.end();
         ++early)
      if (early->label == held.label) {
        static_cast<Message<Value> &>(held) = std::move(*early);
        source.early.erase(early);
        return true;
      }
    return false;
  }

  Position &position;
  S &stage;
  E &endpoint;
  const Options &options;
  std::vector<Source> sources; ///< By the number of a partner.
};

} // namespace ppcc::rt
