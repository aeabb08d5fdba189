// The functions that Importers.def names.
#pragma once

#include "ppcc/Import/Importer.h"

namespace ppcc {

#define IMPORTER(Name, Extensions, Begins, Read, Summary)                      \
  bool Begins(StringRef text);                                                 \
  std::optional<Program> Read(ImportContext &context);
#include "ppcc/Import/Importers.def"
#undef IMPORTER

} // namespace ppcc
