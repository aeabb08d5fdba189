// Waits by tests, for what has no wait with a limit.
#pragma once

#include "ppcc/Runtime/Error.h"

#include <chrono>
#include <thread>

namespace ppcc::rt {

/// Waits until `done` is true: tests it often at first, then with pauses of 50
/// microseconds. Calls `listen` before each pause, which throws when there is
/// nothing to wait for any more. Throws TimedOut after `patience`.
template <class Done, class Listen>
void await(std::chrono::milliseconds patience, Done done, Listen listen) {
  if (done())
    return;
  auto start = std::chrono::steady_clock::now();
  for (unsigned tests = 0; !done(); ++tests) {
    listen();
    if (tests < 200)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (std::chrono::steady_clock::now() - start > patience)
      throw TimedOut();
  }
}

} // namespace ppcc::rt
