// 1F1B as somebody would write it who has no engine: plain code over queues of
// his own, and nothing of ours but the values.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace byhand {

struct Message {
  uint32_t microbatch = 0;
  std::vector<double> value;
};

/// A queue with a lock.
class Queue {
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
class Network {
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
