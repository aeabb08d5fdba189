// 1F1B as somebody would write it who has no engine: plain code over queues of
// his own, and nothing of ours but the values.
#pragma once

#include <algorithm>
#if __has_include(<boost/lockfree/spsc_queue.hpp>)
#include <boost/lockfree/spsc_queue.hpp>
#define PPCC_HAS_BOOST
#endif
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace byhand {

struct Message {
  uint32_t microbatch = 0;
  std::vector<double> value;
};

/// A queue with a lock.
class LockedQueue {
public:
  void push(Message &&message) {
    {
      std::lock_guard lock(mutex);
      queue.push_back(std::move(message));
    }
    filled.notify_one();
  }
  Message pop() {
    std::unique_lock lock(mutex);
    filled.wait(lock, [&] { return !queue.empty(); });
    Message message = std::move(queue.front());
    queue.pop_front();
    return message;
  }

private:
  std::mutex mutex;
  std::condition_variable filled;
  std::deque<Message> queue;
};

#ifdef PPCC_HAS_BOOST
/// Boost's ring of one producer and one consumer; who waits gives way.
class LockFreeQueue {
public:
  void push(Message &&message) {
    while (!ring.push(std::move(message)))
      std::this_thread::yield();
  }
  Message pop() {
    Message message;
    while (!ring.pop(message))
      std::this_thread::yield();
    return message;
  }

private:
  boost::lockfree::spsc_queue<Message, boost::lockfree::capacity<256>> ring;
};
#endif

/// What each rank does; `forward` and `backward` take a value and give one.
template <class Receive, class Send>
void oneFOneB(uint32_t rank, uint32_t ranks, uint32_t microbatches,
              Receive receive, Send send) {
  bool first = rank == 0, last = rank + 1 == ranks;
  std::vector<Message> kept(ranks);
  auto forward = [&](uint32_t m) {
    Message message = first ? Message{m, {}} : receive(rank - 1);
    if (!last)
      send(rank + 1, std::move(message));
    else
      kept[m % ranks] = std::move(message);
  };
  auto backward = [&](uint32_t m) {
    Message message = last ? std::move(kept[m % ranks]) : receive(rank + 1);
    if (!first)
      send(rank - 1, std::move(message));
  };
  uint32_t warmup = std::min(ranks - 1 - rank, microbatches), m = 0;
  for (; m != warmup; ++m)
    forward(m);
  for (; m != microbatches; ++m)
    forward(m), backward(m - warmup);
  for (m -= warmup; m != microbatches; ++m)
    backward(m);
}

/// Queues for each pair of neighbours, by the receiver.
template <class Queue> class Network {
public:
  Network(uint32_t ranks, uint32_t microbatches)
      : ranks(ranks), microbatches(microbatches), up(ranks), down(ranks) {}

  void run(uint32_t rank) {
    oneFOneB(
        rank, ranks, microbatches,
        [&](uint32_t from) { return (from < rank ? up : down)[rank].pop(); },
        [&](uint32_t to, Message &&message) {
          (to > rank ? up : down)[to].push(std::move(message));
        });
  }

private:
  uint32_t ranks, microbatches;
  std::vector<Queue> up, down;
};

} // namespace byhand
