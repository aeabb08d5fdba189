// Quotes text of a file in messages.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// The beginning of `text`.
std::string quote(StringRef text, size_t longest = 40);

} // namespace ppcc
