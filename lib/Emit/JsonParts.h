// Parts of programs in JSON, as docs/program-format.md describes them.
#pragma once

#include "ppcc/Emit/Writer.h"

namespace ppcc {

/// The key `costs`, as docs/costs.schema.json describes it.
void putCosts(Writer &writer, const Program &program);
/// The key `nodes`.
void putNodes(Writer &writer, const NodeGraphs &nodes);

} // namespace ppcc
