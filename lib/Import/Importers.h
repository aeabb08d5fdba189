// The functions that Importers.def names.
#pragma once

#include "ppcc/Import/Importer.h"

namespace ppcc {

/// The beginning of `text`, for messages.
inline std::string quote(StringRef text, size_t longest = 40) {
  return text.take_front(longest).str() + (text.size() > longest ? "..." : "");
}

#define IMPORTER(Name, Extensions, Begins, Read, Summary)                      \
  bool Begins(StringRef text);                                                 \
  std::optional<Program> Read(ImportContext &context);
#include "ppcc/Import/Importers.def"
#undef IMPORTER

} // namespace ppcc
