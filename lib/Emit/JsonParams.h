// How the parameters of a program are written in JSON.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

/// Whether the value is written as it stands: numbers and booleans; all else is
/// a string.
bool isJsonLiteral(const ProgramParam &param);

} // namespace ppcc
