// How a program is to be run.
#pragma once

#include "ppcc/Runtime/Recorder.h"

#include <chrono>

namespace ppcc::rt {

/// When a rank waits for its messages.
enum class WaitPolicy : uint8_t {
  /// For a receive before the action that reads it, for a send at the end.
  Posted,
  /// For both where they stand; a send ends when its receive is posted. This is
  /// the transport that the compiler calls `rendezvous`.
  Rendezvous,
};

/// How the members of an overlap group run.
enum class Overlap : uint8_t {
  Serial,
  /// In threads of their own: the stage must allow calls at the same time for
  /// different stages or microbatches.
  Concurrent,
};

struct Options {
  WaitPolicy waitPolicy = WaitPolicy::Posted;
  Overlap overlap = Overlap::Serial;
  /// The limit of one wait for another rank.
  milliseconds timeout = std::chrono::minutes(10);
  /// Notes when what is done, if there is one.
  Trace *trace = nullptr;
};

} // namespace ppcc::rt
