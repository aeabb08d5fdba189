// The functions that Importers.def names, and what those share.
#pragma once

#include "ppcc/Import/Importer.h"

namespace ppcc {

/// The beginning of `text`, for messages.
inline std::string quote(StringRef text, size_t longest = 40) {
  return text.take_front(longest).str() + (text.size() > longest ? "..." : "");
}

inline StringRef withoutMark(StringRef text) {
  text.consume_front("\xEF\xBB\xBF");
  return text;
}

#define IMPORTER(Name, Extensions, Begins, Read, Summary)                      \
  bool Begins(StringRef text);                                                 \
  std::optional<Program> Read(ImportContext &context);
#include "ppcc/Import/Importers.def"

/// Fills in all of `program` but its rows, and the pipe and peer of each row,
/// from the stages and microbatches that its ranks compute. With `severalPipes`
/// a stage may be on two ranks when pipes explain it: ranges of microbatches
/// with a placement each, which put equally many stages on each rank. False
/// after reports that nothing explains the rows. O(actions).
bool inferPlacement(Program &program, bool severalPipes,
                    ImportContext &context);

} // namespace ppcc
