// A thread that acts when another does not come back in time.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace ppcc::rt {

/// Watches one thread, from a call of alive() to the next of rest(). When
/// alive() has not been called for the time of a patience, or when `fails` says
/// that something else has gone wrong, it calls `act`; that must let the thread
/// come back. It looks ten times in a patience, and at least every 100 ms.
///
/// `act` is called once at most. Where it does not come back itself, the
/// watchdog's thread is left to it: what both functions use must stay.
class Watchdog {
public:
  /// Both are called in the watchdog's thread. `act` gets what `fails` said, or
  /// nothing when the thread stayed away.
  Watchdog(std::chrono::milliseconds patience,
           std::function<std::optional<std::string>()> fails,
           std::function<void(const std::optional<std::string> &)> act)
      : state(new State{patience, std::move(fails), std::move(act)}),
        thread([state = state] { state->watch(); }) {}
  Watchdog(const Watchdog &) = delete;
  ~Watchdog() {
    {
      std::lock_guard lock(state->mutex);
      state->leaving = true;
    }
    state->changed.notify_all();
    if (state->isActing)
      thread.detach();
    else
      thread.join();
  }

  /// The thread is here. A store, but for the first time behind rest().
  void alive() {
    state->stamp.fetch_add(1, std::memory_order_relaxed);
    if (!state->isWatched.load(std::memory_order_relaxed))
      state->set(state->isWatched, true);
  }
  /// It may stay away from now on.
  void rest() { state->set(state->isWatched, false); }
  /// Lets it act now, and waits for that, at most so long; false when `act`
  /// has not come back.
  bool actNow(std::chrono::milliseconds limit) {
    state->set(state->mustAct, true);
    std::unique_lock lock(state->mutex);
    return state->changed.wait_for(lock, limit,
                                   [&] { return state->hasActed; });
  }

private:
  using Clock = std::chrono::steady_clock;

  struct State {
    std::chrono::milliseconds patience;
    std::function<std::optional<std::string>()> fails;
    std::function<void(const std::optional<std::string> &)> act;
    std::mutex mutex{};
    std::condition_variable changed{};
    std::atomic<uint64_t> stamp = 0;
    std::atomic<bool> isWatched = false, mustAct = false, isActing = false;
    bool leaving = false, hasActed = false;

    void set(std::atomic<bool> &flag, bool value) {
      {
        std::lock_guard lock(mutex);
        flag = value;
      }
      changed.notify_all();
    }

    void watch() {
      auto period = std::clamp<Clock::duration>(patience / 10,
                                                std::chrono::milliseconds(1),
                                                std::chrono::milliseconds(100));
      std::unique_lock lock(mutex);
      uint64_t seen = 0;
      auto since = Clock::now();
      while (!leaving) {
        if (!isWatched && !mustAct) {
          changed.wait(lock);
          seen = stamp, since = Clock::now();
          continue;
        }
        std::optional<std::string> wrong;
        if (!mustAct) {
          changed.wait_for(lock, period);
          if (leaving || !(isWatched || mustAct))
            continue; // What is looked at may be gone.
          if (uint64_t now = stamp; now != seen)
            seen = now, since = Clock::now();
          wrong = fails();
          if (!wrong && !mustAct && Clock::now() - since <= patience)
            continue;
        }
        isActing = true;
        lock.unlock();
        act(wrong);
        lock.lock();
        isActing = false;
        hasActed = true;
        changed.notify_all();
        return;
      }
    }
  };

  std::shared_ptr<State> state;
  std::thread thread;
};

} // namespace ppcc::rt
