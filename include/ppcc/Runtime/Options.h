// How a program is to be run.
#pragma once

#include "ppcc/Runtime/Recorder.h"

#include <chrono>

namespace ppcc::rt {

/// When a rank waits for its messages.
enum class Waits : uint8_t {
  /// For a receive before the action that reads it, for a send at the end.
  Late,
  /// For both where they stand; a send ends when its receive is posted. This is
  /// the transport that the compiler calls `rendezvous`.
  Here,
};

/// How the members of an overlap group run.
enum class Overlap : uint8_t {
  InTurn,
  /// In threads of their own: the stage must allow calls at the same time for
  /// different stages or microbatches.
  Together,
};

struct Options {
  Waits waits = Waits::Late;
  Overlap overlap = Overlap::InTurn;
  /// The limit of one wait for another rank.
  milliseconds patience = std::chrono::minutes(10);
  /// Notes when what is done, if there is one.
  Trace *trace = nullptr;
};

} // namespace ppcc::rt
