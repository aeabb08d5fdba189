// Diagnostics for programs to read.
#pragma once

#include "ppcc/Basic/Diagnostics.h"

namespace ppcc {

/// Writes `diagnostic` as a JSON object on a line of its own: `code`,
/// `severity`, `message`, `hint` (what to do) and `notes`. It and each note
/// have a `place`, as people read it, if they point anywhere, and `file`,
/// `line`, `column`, `end_line`, `end_column` if that is in a source file; all
/// count from 1, columns in bytes, and the end is not in the range. `edits`, if
/// any, are alternatives: `replacement` in the place of such a range, and a
/// `title`.
void renderJson(const Diagnostic &diagnostic, const SourceManager &sources,
                raw_ostream &out);

} // namespace ppcc
