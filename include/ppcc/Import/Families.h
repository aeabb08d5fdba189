// Reads programs for all values of a parameter, as docs/every-m.md describes
// them.
#pragma once

#include "ppcc/Import/Importer.h"
#include "ppcc/Proof/ParametricProgram.h"

namespace ppcc {

/// The program of the value that the context's options give the parameter.
std::optional<Program> importFamilies(ImportContext &context);

/// All of them: what the file says, which nobody has proven.
std::optional<proof::ParametricProgram> readFamilies(ImportContext &context);

} // namespace ppcc
