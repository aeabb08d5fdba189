// The pages about errors that travel inside the compiler: docs/errors/.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// The pages of a table of diagnostics, as Markdown: a section of each code,
/// whose listings are files (the name stands behind the language) and commands.
struct ErrorPages {
  StringRef name; ///< `Sema.md`.
  StringRef text;
};

ArrayRef<ErrorPages> errorPages();

} // namespace ppcc
