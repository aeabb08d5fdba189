// Reads a program for all values of a parameter, as docs/every-m.md describes
// it, and takes one of its programs.
#pragma once

#include "ppcc/Import/Importer.h"

namespace ppcc {

/// The program of the value that the context's options give the parameter.
std::optional<Program> importFamilies(ImportContext &context);

} // namespace ppcc
