// Work in a process of its own, which can be given up at any time.
#pragma once

#include "ppcc/Support/LLVM.h"
#include <sys/types.h>

namespace ppcc::lsp {

/// One piece of work at a time: what it does wrong, and what it takes, is its
/// own; what it writes is read here.
class Job {
public:
  Job() = default;
  Job(const Job &) = delete;
  ~Job() { stop(); }

  /// False where no process can be had. The work gets `seconds` of processor.
  bool start(unsigned seconds, function_ref<void(raw_ostream &)> work);
  bool isRunning() const { return process > 0; }
  /// To wait on; -1 for nothing.
  int descriptor() const { return pipeEnd; }
  /// Takes what has come. True at the end; `said` is then whole.
  bool read();
  void stop();

  std::string said;
  /// Whether what ended did its work; else, whether it took too long.
  bool isGood = false, isTooLong = false;

private:
  void end();

  pid_t process = 0;
  int pipeEnd = -1;
};

} // namespace ppcc::lsp
