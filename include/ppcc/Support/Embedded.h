// Files that travel inside the compiler.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// A file by its name, such as `viewer.js`.
struct EmbeddedFile {
  StringRef name, text;
};

} // namespace ppcc
