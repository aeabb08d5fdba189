// Text that a terminal shows, and does not obey.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace ppcc {

/// `text` with all that is not seen as it is written escaped: `\n`, `\x1B`,
/// `\u{202E}` for control characters, line separators and those that turn the
/// direction of what follows, `\xFF` for bytes that are no UTF-8.
std::string printable(llvm::StringRef text);

/// What such an escape stands for, or `\\` or `\"`, taken off the text behind
/// its backslash; nothing, and a letter taken, where it is none.
std::optional<std::string> takeEscape(llvm::StringRef &text);

/// Text of JSON, with such characters of its strings as `\u202E`.
std::string printableJson(llvm::StringRef json);

/// The columns that printable text takes.
size_t columnsOf(llvm::StringRef text);

} // namespace ppcc
