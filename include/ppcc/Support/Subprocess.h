// Work in a process of its own, which can be given up at any time.
#pragma once

#include "ppcc/Support/LLVM.h"
#include <sys/types.h>

namespace ppcc {

/// One piece of work at a time, for what answers others: what it does wrong,
/// and what it takes, is its own; what it writes is read here.
class Subprocess {
public:
  enum class Outcome : uint8_t { Succeeded, TimedOut, OutOfMemory, Crashed };

  Subprocess() = default;
  Subprocess(const Subprocess &) = delete;
  ~Subprocess() { stop(); }

  /// False where no process can be had. The work gets `seconds` of processor,
  /// four times as many by the clock, and `maxBytes` of memory.
  bool start(unsigned seconds, function_ref<void(raw_ostream &)> work);
  bool isRunning() const { return process > 0; }
  /// To wait on; -1 for nothing.
  int descriptor() const { return pipeEnd; }
  /// Takes what has come, without waiting. True at the end; `output` is then
  /// whole.
  bool read();
  void stop();

  static constexpr uint64_t maxBytes = uint64_t(2) << 30,
                            maxOutput = uint64_t(256) << 20;
  std::string output;
  Outcome outcome = Outcome::Crashed; ///< Of what ended.
  /// Why there is no result; empty when there is one.
  std::string errorText() const;

private:
  void end();

  pid_t process = 0;
  int pipeEnd = -1;
  unsigned seconds = 0;
};

} // namespace ppcc
