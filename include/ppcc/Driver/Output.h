// Writes files so that a failure leaves the old file whole.
#pragma once

#include "ppcc/Compiler/Compiler.h"
#include "ppcc/Driver/CommandLine.h"

namespace ppcc {

/// Lets `write` fill the file `path`, or `out` for `-`. A regular file is
/// replaced once all is written, links to it and its mode are kept; it is left
/// alone when `write` reports an error, and refused when it is one of those
/// that `sources` has read. Errors after a report, also that the file cannot be
/// written.
ExitCode writeOutput(StringRef path, raw_ostream &out,
                     const SourceManager &sources, DiagnosticEngine &diags,
                     function_ref<void(raw_ostream &)> write);
ExitCode writeOutput(StringRef path, raw_ostream &out, Session &session,
                     function_ref<void(raw_ostream &)> write);

/// Whether two outputs would be written to one file.
bool isSameOutput(StringRef a, StringRef b);

} // namespace ppcc
