// Threads for the members of a group: at the same time; or a forward and a
// backward in turns, where a schedule lets them overlap: an exchange of one
// runs while the other computes.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace ppcc::rt {

/// Runs the members of a group at the same time. Threads are started when a
/// group first needs them and sleep in between.
class ThreadPool {
public:
  ThreadPool() = default;
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;
  ~ThreadPool() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    started.notify_all();
  }

  /// Calls `job(0)` to `job(count - 1)`, the first on this thread, and returns
  /// when all have ended. `job` must not throw.
  void run(size_t count, const std::function<void(size_t)> &job) {
    while (workers.size() + 1 < count)
      workers.emplace_back([this, number = workers.size() + 1, seen = round] {
        workerLoop(number, seen);
      });
    {
      std::lock_guard lock(mutex);
      current = &job;
      members = count;
      running = count - 1;
      ++round;
    }
    started.notify_all();
    job(0);
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return running == 0; });
  }

private:
  void workerLoop(size_t number, uint64_t seen) {
    std::unique_lock lock(mutex);
    while (true) {
      started.wait(lock, [&] { return stopping || round != seen; });
      if (stopping)
        return;
      seen = round;
      if (number >= members)
        continue;
      lock.unlock();
      (*current)(number);
      lock.lock();
      if (--running == 0)
        ended.notify_one();
    }
  }

  std::mutex mutex;
  std::condition_variable started, ended;
  const std::function<void(size_t)> *current = nullptr;
  size_t members = 0, running = 0;
  uint64_t round = 0;
  bool stopping = false;
  std::vector<std::jthread> workers; ///< Last, so that they end first.
};

/// Calls `job(0)` to `job(count - 1)`, each in a thread of its own. Returns
/// when all have ended; throws what the first of them has thrown.
template <class Job> void runInThreads(size_t count, Job job) {
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::jthread> threads;
  for (size_t i = 0; i != count; ++i)
    threads.emplace_back([&, i] {
      try {
        job(i);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!first)
          first = std::current_exception();
      }
    });
  threads.clear();
  if (first)
    std::rethrow_exception(first);
}

/// One side of an overlap group, which runs when it is called.
using Half = std::function<void()>;

namespace detail {

/// Two threads, of which one runs: that of the forward and that of the
/// backward.
class Handoff {
public:
  /// Runs a half when it is its turn. Keeps what it throws, if it is the first.
  void run(bool isForward, const Half &half) {
    running = this;
    isForwardThread = isForward;
    try {
      waitForTurn(isForward);
      half();
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!failure)
        failure = std::current_exception();
    }
    running = nullptr;
    std::lock_guard lock(mutex);
    otherFinished = true;
    changed.notify_all();
  }
  static void yieldToOther() {
    if (Handoff *turns = running) {
      turns->pass(!isForwardThread);
      turns->waitForTurn(isForwardThread);
    }
  }
  void rethrow() const {
    if (failure)
      std::rethrow_exception(failure);
  }

private:
  void pass(bool toForward) {
    std::lock_guard lock(mutex);
    isForwardsTurn = toForward;
    changed.notify_all();
  }
  void waitForTurn(bool isForward) {
    std::unique_lock lock(mutex);
    changed.wait(lock,
                 [&] { return otherFinished || isForwardsTurn == isForward; });
    if (failure) // LibTorch wants an exception of the standard's.
      throw std::runtime_error("the other half has failed");
  }

  // Of this thread.
  inline static thread_local Handoff *running = nullptr;
  inline static thread_local bool isForwardThread = false;

  std::mutex mutex;
  std::condition_variable changed;
  bool isForwardsTurn = true, otherFinished = false;
  std::exception_ptr failure;
};

} // namespace detail

/// Runs both, the forward first, each until it gives way: the body of an
/// `overlap` of stages that call yieldToOther(). Throws what the first of them
/// throws.
inline void interleave(const Half &forward, const Half &backward) {
  static thread_local ThreadPool threadPool;
  detail::Handoff turns;
  threadPool.run(
      2, [&](size_t i) { turns.run(i == 0, i == 0 ? forward : backward); });
  turns.rethrow();
}

/// Lets the other half of an overlap group run until it gives way itself, or
/// ends; elsewhere it does nothing. For forwards, and the backwards of autograd
/// functions: between the begin of an exchange and the wait for it.
inline void yieldToOther() { detail::Handoff::yieldToOther(); }
} // namespace ppcc::rt
