// What can be read of a text that does not parse.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc::editor {

/// The text without the statement around a syntax error, so that the rest may
/// parse: blanks stand in its place, and all else stays where it is. Where the
/// error is that braces are open at the end, they are closed after it. The
/// text itself where nothing can be left out. O(text).
std::string blankOutError(StringRef text, size_t place);

} // namespace ppcc::editor
