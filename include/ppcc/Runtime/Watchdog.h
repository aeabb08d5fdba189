// Calls a handler when the watched thread gives no heartbeat within a timeout.
//
// Algorithm: a watchdog timer. heartbeat() increments a counter. A monitor
// thread polls the counter ten times in a timeout, but at least every 100 ms
// and at most every 1 ms. It also polls an error function. It calls the handler
// on an error, on triggerNow(), or when the counter has not changed for longer
// than the timeout. idle() suspends it.
// Invariant: the monitor calls both functions without the lock, the handler at
// most once, and then ends. If the handler still runs when the watchdog is
// destroyed, the thread is detached; a shared_ptr keeps the state that it uses.
// Cost: a heartbeat is a relaxed increment and a load; the first one after
// idle() also takes the lock.
//
// Example: timeout 1 s, so a poll every 100 ms. Heartbeats at 0 and 250 ms.
// The poll at 300 ms sees a new count. The polls up to 1200 ms see no change.
// The poll at 1300 ms, or at 1400 ms, finds the timeout exceeded.
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
/// alive() has not been called for the timeout, or when `fails` says
/// that something else has gone wrong, it calls `act`; that must let the thread
/// come back. It looks ten times in a timeout, and at least every 100 ms.
///
/// `act` is called once at most. Where it does not come back itself, the
/// watchdog's thread is left to it: what both functions use must stay.
class Watchdog {
public:
  /// Both are called in the watchdog's thread. `act` gets what `fails` said, or
  /// nothing when the thread stayed away.
  Watchdog(std::chrono::milliseconds timeout,
           std::function<std::optional<std::string>()> findError,
           std::function<void(const std::optional<std::string> &)> onFailure)
      : state(new State{timeout, std::move(findError), std::move(onFailure)}),
        thread([state = state] { state->watch(); }) {}
  Watchdog(const Watchdog &) = delete;
  ~Watchdog() {
    bool isLeft;
    {
      std::lock_guard lock(state->mutex);
      state->stopping = true;
      isLeft = state->isHandling || (state->isPolling && state->isTriggered);
    }
    state->changed.notify_all();
    isLeft ? thread.detach() : thread.join();
  }

  /// The thread is here. A store, but for the first time after rest().
  void heartbeat() {
    state->heartbeats.fetch_add(1, std::memory_order_relaxed);
    if (!state->isWatched.load(std::memory_order_relaxed))
      state->set(state->isWatched, true);
  }
  /// It may stay away from now on; `fails` is not called any more, unless it
  /// was triggered.
  void idle() {
    state->set(state->isWatched, false);
    std::unique_lock lock(state->mutex);
    state->changed.wait(
        lock, [&] { return !state->isPolling || state->isTriggered; });
  }
  /// Lets it act now, and waits for that, at most so long; false when `act`, or
  /// `fails` before it, has not come back.
  bool triggerNow(std::chrono::milliseconds limit) {
    state->set(state->isTriggered, true);
    std::unique_lock lock(state->mutex);
    return state->changed.wait_for(lock, limit,
                                   [&] { return state->hasHandled; });
  }

private:
  using Clock = std::chrono::steady_clock;

  struct State {
    std::chrono::milliseconds timeout;
    std::function<std::optional<std::string>()> findError;
    std::function<void(const std::optional<std::string> &)> onFailure;
    std::mutex mutex{};
    std::condition_variable changed{};
    std::atomic<uint64_t> heartbeats = 0;
    std::atomic<bool> isWatched = false, isTriggered = false;
    bool isPolling = false, isHandling = false, stopping = false,
         hasHandled = false;

    void set(std::atomic<bool> &flag, bool value) {
      {
        std::lock_guard lock(mutex);
        flag = value;
      }
      changed.notify_all();
    }

    void watch() {
      auto period = std::clamp<Clock::duration>(timeout / 10,
                                                std::chrono::milliseconds(1),
                                                std::chrono::milliseconds(100));
      std::unique_lock lock(mutex);
      uint64_t seen = 0;
      auto since = Clock::now();
      while (!stopping) {
        if (!isWatched && !isTriggered) {
          changed.wait(lock);
          seen = heartbeats, since = Clock::now();
          continue;
        }
        std::optional<std::string> wrong;
        if (!isTriggered) {
          changed.wait_for(lock, period);
          if (stopping || !(isWatched || isTriggered))
            continue; // What is looked at may be gone.
          if (uint64_t now = heartbeats; now != seen)
            seen = now, since = Clock::now();
          isPolling = true;
          lock.unlock();
          wrong = findError();
          lock.lock();
          isPolling = false;
          changed.notify_all();
          if (stopping || !(isWatched || isTriggered) ||
              (!wrong && !isTriggered && Clock::now() - since <= timeout))
            continue;
        }
        isHandling = true;
        lock.unlock();
        onFailure(wrong);
        lock.lock();
        isHandling = false;
        hasHandled = true;
        changed.notify_all();
        return;
      }
    }
  };

  std::shared_ptr<State> state;
  std::thread thread;
};

} // namespace ppcc::rt
