// Tells build tools which files an output comes from.
#pragma once

#include "ppcc/Basic/Diagnostics.h"

namespace ppcc {

/// Writes a rule of Make: `output`, as it is written, depends on the running
/// program and on all files that were read. Their paths are absolute, because
/// build tools do not agree on the folder that others would start from. False
/// after a report that Make cannot read one of them in the file `depfile`.
bool writeDepfile(StringRef depfile, StringRef output,
                  const SourceManager &sources, DiagnosticEngine &diags,
                  raw_ostream &out);

} // namespace ppcc
