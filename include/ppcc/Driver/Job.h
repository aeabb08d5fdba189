// Work in a process of its own, which can be given up at any time.
#pragma once

#include "ppcc/Support/LLVM.h"
#include <sys/types.h>

namespace ppcc {

/// One piece of work at a time, for what answers others: what it does wrong,
/// and what it takes, is its own; what it writes is read here.
class Job {
public:
  enum class Outcome : uint8_t { Good, TooLong, TooLarge, Crashed };

  Job() = default;
  Job(const Job &) = delete;
  ~Job() { stop(); }

  /// False where no process can be had. The work gets `seconds` of processor,
  /// four times as many by the clock, and `mostBytes` of memory.
  bool start(unsigned seconds, function_ref<void(raw_ostream &)> work);
  bool isRunning() const { return process > 0; }
  /// To wait on; -1 for nothing.
  int descriptor() const { return pipeEnd; }
  /// Takes what has come, without waiting. True at the end; `said` is then
  /// whole.
  bool read();
  void stop();

  static constexpr uint64_t mostBytes = uint64_t(2) << 30,
                            mostSaid = uint64_t(256) << 20;
  std::string said;
  Outcome outcome = Outcome::Crashed; ///< Of what ended.
  /// Why there is no result; empty when there is one.
  std::string complaint() const;

private:
  void end();

  pid_t process = 0;
  int pipeEnd = -1;
  unsigned seconds = 0;
};

} // namespace ppcc
