// Diagnostics and colours of the command lines.
#pragma once

#include "ppcc/Compiler/Compiler.h"
#include "ppcc/Driver/CommandLine.h"

namespace ppcc {

/// How diagnostics are written.
struct ConsoleOptions {
  std::string color = "auto"; ///< Or `always`, `never`.
  bool asJson = false;        ///< Not for people.
  size_t maxErrors = 100;
};

/// Whether texts in `stream` are coloured: as `when` (auto, always, never)
/// says; `auto` means a terminal, unless NO_COLOR is set.
bool wantsColor(StringRef when, const raw_ostream &stream);

/// A session whose diagnostics go to `err`, after `adapt`, if any, has changed
/// them.
std::unique_ptr<Session>
consoleSession(Session::Files files, const ConsoleOptions &options,
               raw_ostream &err,
               std::function<void(Diagnostic &)> adapt = nullptr);

/// The exit code for what was compiled; explains a request that does not fit
/// its input.
ExitCode exitCodeOf(const Compiled &compiled, raw_ostream &err);

} // namespace ppcc
