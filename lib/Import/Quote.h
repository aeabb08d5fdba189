// Quotes text of a file in messages.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>

namespace ppcc {

/// The beginning of `text`.
std::string quote(llvm::StringRef text, size_t longest = 40);

} // namespace ppcc
