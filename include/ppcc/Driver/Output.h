// Writes files so that a failure leaves the old file whole.
#pragma once

#include "ppcc/Basic/Diagnostics.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ppcc {

/// Lets `write` fill the file `path`, or `out` for `-`. A regular file is
/// replaced once all is written, and left alone when `write` gives false. False
/// when it does or, after a report, when the file cannot be written.
bool writeOutput(llvm::StringRef path, llvm::raw_ostream &out,
                 DiagnosticEngine &diags,
                 llvm::function_ref<bool(llvm::raw_ostream &)> write);

/// Flushes standard output at the end of main. `exitCode`, or 1 and a report
/// when not all could be written.
int closeStandardOutput(int exitCode);

} // namespace ppcc
