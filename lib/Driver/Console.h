// What command lines show people, and on which terminal.
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

/// A session whose diagnostics are written as errors, after `adapt`, if any,
/// has changed them.
std::unique_ptr<Session>
consoleSession(const Invocation &call, const ConsoleOptions &options,
               std::function<void(Diagnostic &)> adapt = nullptr);

/// The options for a timeline in `stream`: its colours, the characters of the
/// locale and, where no width is asked for, that of the terminal.
PictureOptions fitted(PictureOptions options, const raw_ostream &stream,
                      StringRef color);

/// The exit code for what was compiled; explains a request that does not fit
/// its input.
ExitCode exitCodeOf(const Compiled &compiled, raw_ostream &err);

} // namespace ppcc
