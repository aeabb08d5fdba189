// Writes the graphs of nodes of a program as JSON.
#pragma once

#include "Writer.h"

namespace ppcc {

/// The key `nodes` of docs/program-format.md.
void putNodes(Writer &writer, const Program &program);

} // namespace ppcc
