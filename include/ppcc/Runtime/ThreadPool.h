// Threads that wait until there is something to do together.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
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

} // namespace ppcc::rt
