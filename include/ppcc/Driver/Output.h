// Writes files so that a failure leaves the old file whole.
#pragma once

#include "ppcc/Basic/Diagnostics.h"

namespace ppcc {

/// Lets `write` fill the file `path`, or `out` for `-`. A regular file is
/// replaced once all is written, links to it and its mode are kept; it is left
/// alone when `write` gives false, and refused when it is one of those that
/// `sources` has read. False when `write` gives false or, after a report, when
/// the file cannot be written.
bool writeOutput(StringRef path, raw_ostream &out, const SourceManager &sources,
                 DiagnosticEngine &diags,
                 function_ref<bool(raw_ostream &)> write);

/// Whether two outputs would be written to one file.
bool isSameOutput(StringRef a, StringRef b);

} // namespace ppcc
