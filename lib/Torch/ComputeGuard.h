// What computes in this process at one time.
#pragma once

#include <c10/util/Exception.h>

#include <atomic>
#include <stdexcept>

namespace ppcc::rt {

/// Counts the computations that run in this process at one time.
class ComputeGuard {
public:
  /// Throws std::runtime_error where another one runs that it must not meet.
  ComputeGuard();
  ~ComputeGuard() { count.fetch_sub(1); }
  ComputeGuard(const ComputeGuard &) = delete;
  ComputeGuard &operator=(const ComputeGuard &) = delete;

private:
  inline static std::atomic<int> count = 0;
};

/// Calls `run`, which computes; the errors of LibTorch lose their pages of
/// stack.
template <class Run> auto compute(Run run) {
  ComputeGuard computing;
  try {
    return run();
  } catch (const c10::Error &error) {
    std::throw_with_nested(std::runtime_error(error.what_without_backtrace()));
  }
}

} // namespace ppcc::rt
