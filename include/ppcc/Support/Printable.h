// Text that a terminal shows, and does not obey.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// `text` with all that is not seen as it is written escaped: `\n`, `\x1B`,
/// `\u{202E}` for control characters, line separators and those that turn the
/// direction of what follows, `\xFF` for bytes that are no UTF-8.
std::string printable(StringRef text);

/// What such an escape stands for, or `\\` or `\"`, taken off the text after
/// its backslash; nothing, and a letter taken, where it is none.
std::optional<std::string> takeEscape(StringRef &text);

/// Text of JSON, with such characters of its strings as `\u202E`.
std::string printableJson(StringRef json);

/// The columns that printable text takes.
size_t columnsOf(StringRef text);

} // namespace ppcc
