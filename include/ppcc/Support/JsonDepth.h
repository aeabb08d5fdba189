// A bound for readers of JSON that go down as far as it is nested.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// Whether brackets of the text, those in strings apart, nest deeper than that.
inline bool isJsonDeeper(StringRef text, int64_t levels) {
  int64_t depth = 0;
  bool inString = false;
  for (size_t i = 0; i != text.size() && depth <= levels; ++i) {
    char c = text[i];
    inString ^= c == '"';
    i += inString && c == '\\' && i + 1 != text.size();
    depth += !inString && (c == '[' || c == '{');
    depth -= !inString && (c == ']' || c == '}');
  }
  return depth > levels;
}

} // namespace ppcc
