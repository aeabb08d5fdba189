// One style for schedules.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc::editor {

/// The text in the style of the library of schedules: two spaces a brace, four
/// more where a statement goes on; one space between words and around
/// operators; at most one empty line. Where lines break is the writer's, and so
/// are columns that stand below each other, the ends of lines (CR LF) and a
/// byte order mark. Tokens and comments are those of the text, whatever it is;
/// a text in that style stays as it is. O(text).
std::string format(StringRef text);

} // namespace ppcc::editor
