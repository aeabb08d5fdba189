// Quotes text of a file in messages.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>

namespace ppcc {

/// The beginning of `text`, with what is not printable ASCII as `\xNN`.
std::string quote(llvm::StringRef text, size_t longest = 40);

} // namespace ppcc
