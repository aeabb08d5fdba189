// Reads costs as docs/costs.schema.json describes them.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/Program.h"

namespace ppcc {

/// Reads the JSON object `text`, a part of `file`, into the costs of `head`;
/// what it says overrides what was there. False after reports of all that is
/// wrong with it. O(bytes + stages * settings).
bool readCosts(StringRef text, uint32_t file, SourceManager &sources,
               DiagnosticEngine &diags, Head &head);

} // namespace ppcc
