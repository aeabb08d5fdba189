// Addresses of files.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// The text with the bytes for which `%2F` and the like stand.
std::string percentDecoded(StringRef text);
/// The `file://` address of an absolute path.
std::string fileUri(StringRef path);

} // namespace ppcc
