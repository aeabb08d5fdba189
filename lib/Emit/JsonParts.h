// Parts of programs in JSON, as docs/program-format.md describes them.
#pragma once

#include "Writer.h"

namespace ppcc {

/// Whether the value of a parameter is written as it stands: a number as JSON
/// writes it, or a boolean.
bool isJsonLiteral(const ProgramParam &param);
/// The key `costs`, as docs/costs.schema.json describes it.
void putCosts(Writer &writer, const Program &program);
/// The key `nodes`.
void putNodes(Writer &writer, const NodeGraphs &nodes);

} // namespace ppcc
