// Waits by tests, for what has no wait with a limit, and what else transports
// of libraries share.
#pragma once

#include "ppcc/Runtime/Error.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace ppcc::rt {

/// Waits until `done` is true: tests it often, gives way now and then, and
/// after some time pauses for 50 microseconds. Calls `listen` before it gives
/// way, which throws when there is nothing to wait for any more. Throws
/// TimedOut after `timeout`.
template <class Done, class Listen>
void waitUntil(milliseconds timeout, Done done, Listen checkPeerFailure) {
  if (done())
    return;
  using Clock = std::chrono::steady_clock;
  Clock::time_point start{};
  // Libraries may give way themselves in each test.
  for (unsigned tests = 1; !done(); ++tests) {
    if (tests % 64 != 0 && tests < 64 * 200)
      continue;
    checkPeerFailure();
    if (start == Clock::time_point())
      start = Clock::now();
    if (tests < 64 * 200)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (Clock::now() - start > timeout)
      throw TimedOut();
  }
}

/// The texts of the ranks, which were gathered one after another.
inline std::vector<std::string> splitEqually(const std::string &all,
                                             size_t size) {
  std::vector<std::string> texts;
  for (size_t at = 0; at != all.size(); at += size)
    texts.push_back(all.substr(at, size));
  return texts;
}

} // namespace ppcc::rt
