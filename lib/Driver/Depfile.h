// Tells build tools which files an output comes from.
#pragma once

#include "ppcc/Basic/Source.h"

namespace ppcc {

/// Writes a rule of Make: `output`, as it is written, depends on the running
/// program and on all files that were read. Their paths are absolute, because
/// build tools do not agree on the folder that others would start from.
void writeDepfile(llvm::StringRef output, const SourceManager &sources,
                  llvm::raw_ostream &out);

} // namespace ppcc
