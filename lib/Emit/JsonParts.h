// Parts of programs in JSON, as docs/program-format.md describes them.
#pragma once

#include "Writer.h"

namespace ppcc {

/// The values of the parameters: numbers and booleans as they stand, all else
/// as strings.
void putParams(JsonFields &fields, const Program &program);
/// Whether the value of a parameter is written as it stands.
bool isJsonLiteral(const ProgramParam &param);
/// The key `costs`, as docs/costs.schema.json describes it.
void putCosts(Writer &writer, const Program &program);
/// The key `nodes`.
void putNodes(Writer &writer, const NodeGraphs &nodes);

} // namespace ppcc
