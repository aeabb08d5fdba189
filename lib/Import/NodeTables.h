// Reads the graphs of nodes of a program from JSON.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/Program.h"

namespace ppcc {

/// Reads the key `nodes` of docs/program-format.md, `text` of the file, into
/// Head::nodes. `kinds` are those of the file, by its numbers; pipes have
/// been read. Reports all that is wrong.
void readNodes(StringRef text, uint32_t file, SourceManager &sources,
               DiagnosticEngine &diags, ArrayRef<KindId> kinds, Head &head);

} // namespace ppcc
