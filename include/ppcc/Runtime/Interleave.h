// A forward and a backward in turns, where a schedule lets them overlap: an
// exchange of one runs while the other computes.
#pragma once

#include "ppcc/Runtime/ThreadPool.h"

#include <exception>
#include <stdexcept>

namespace ppcc::rt {

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
