// Threads that wait until there is something to do together.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ppcc::rt {

/// Runs the members of a group at the same time. Threads are started when a
/// group first needs them and sleep in between.
class Crew {
public:
  Crew() = default;
  Crew(const Crew &) = delete;
  Crew &operator=(const Crew &) = delete;
  ~Crew() {
    {
      std::lock_guard lock(mutex);
      leaving = true;
    }
    started.notify_all();
  }

  /// Calls `job(0)` to `job(count - 1)`, the first on this thread, and returns
  /// when all have ended. `job` must not throw.
  void run(size_t count, const std::function<void(size_t)> &job) {
    while (helpers.size() + 1 < count)
      helpers.emplace_back([this, number = helpers.size() + 1, seen = round] {
        help(number, seen);
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
  void help(size_t number, uint64_t seen) {
    std::unique_lock lock(mutex);
    while (true) {
      started.wait(lock, [&] { return leaving || round != seen; });
      if (leaving)
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
  bool leaving = false;
  std::vector<std::jthread> helpers; ///< Last, so that they end first.
};

} // namespace ppcc::rt
