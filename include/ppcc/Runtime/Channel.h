// The messages of one rank to another, where both are in one process.
#pragma once

#include "ppcc/Runtime/Values.h"

#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ppcc::rt {

/// A queue that one rank fills and one empties, in threads of their own or in
/// one, without a lock; and how many receives were posted. It grows by blocks,
/// of which the last that was emptied is filled again.
template <class Value> class Channel {
public:
  Channel() = default;
  Channel(const Channel &) = delete;
  Channel &operator=(const Channel &) = delete;
  ~Channel() {
    delete spare.load();
    while (first)
      delete std::exchange(first, first->next);
  }

  /// By the sender.
  [[gnu::always_inline]] inline void push(Message<Value> &&message) {
    if (to == std::end(last->messages))
      addBlock();
    to++->assign(message.label, std::move(message.value));
    sent.store(sent.load(std::memory_order_relaxed) + 1,
               std::memory_order_release);
  }
  bool isMatched() const {
    return posted.load(std::memory_order_acquire) >=
           sent.load(std::memory_order_relaxed);
  }

  /// By the receiver.
  void post() {
    posted.store(posted.load(std::memory_order_relaxed) + 1,
                 std::memory_order_release);
  }
  bool hasMessage() const {
    return sent.load(std::memory_order_acquire) != taken;
  }
  /// There must be one.
  [[gnu::always_inline]] inline void popInto(Message<Value> &message) {
    if (from == std::end(first->messages))
      retireFrontBlock();
    message.assign(from->label, std::move(from->value));
    ++from;
    ++taken;
  }

private:
  static constexpr size_t blockSize = 32;
  struct Block {
    Message<Value> messages[blockSize]{};
    Block *next = nullptr;
  };

  [[gnu::cold, gnu::noinline]] void addBlock() {
    Block *fresh = spare.exchange(nullptr, std::memory_order_acquire);
    last = last->next = fresh ? fresh : new Block;
    to = last->messages;
  }
  [[gnu::cold, gnu::noinline]] void retireFrontBlock() {
    Block *empty = std::exchange(first, first->next);
    empty->next = nullptr;
    from = first->messages;
    delete spare.exchange(empty, std::memory_order_acq_rel);
  }

  // What the sender writes lies apart from what the receiver does.
  alignas(64) std::atomic<uint64_t> sent = 0;
  Block *last = new Block;
  Message<Value> *to = last->messages;
  alignas(64) std::atomic<uint64_t> posted = 0;
  uint64_t taken = 0;
  Block *first = last;
  Message<Value> *from = first->messages;
  alignas(64) std::atomic<Block *> spare = nullptr;

public:
  /// Whether an end sleeps until the other does something.
  alignas(64) std::atomic<bool> receiverSleeps = false, senderSleeps = false;
};

/// All channels of a network, made when they are first asked for.
template <class Value> class ChannelTable {
public:
  /// Both ends may come first.
  Channel<Value> *of(uint32_t from, uint32_t to) {
    std::lock_guard lock(mutex);
    auto &place = channels[{from, to}];
    if (!place)
      place = std::make_unique<Channel<Value>>();
    return place.get();
  }

private:
  std::mutex mutex;
  std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<Channel<Value>>>
      channels;
};

/// What the end of a rank has on any network of channels.
template <class Value> class ChannelEnd {
public:
  ChannelEnd(ChannelTable<Value> &all, uint32_t rank, uint32_t numRanks)
      : self(rank), all(all), incoming(numRanks), outgoing(numRanks) {}

  uint32_t rank() const { return self; }
  uint32_t numRanks() const { return static_cast<uint32_t>(incoming.size()); }
  void setRendezvous(bool will) { isRendezvous = will; }

protected:
  Channel<Value> &channelTo(uint32_t to) {
    if (!outgoing[to])
      outgoing[to] = all.of(self, to);
    return *outgoing[to];
  }
  Channel<Value> &channelFrom(uint32_t from) {
    if (!incoming[from])
      incoming[from] = all.of(from, self);
    return *incoming[from];
  }

  uint32_t self;
  bool isRendezvous = true; ///< Somebody may wait for receives.

private:
  ChannelTable<Value> &all;
  std::vector<Channel<Value> *> incoming, outgoing; ///< Those that it knows.
};

} // namespace ppcc::rt
