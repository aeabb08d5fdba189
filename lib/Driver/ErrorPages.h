// The pages about errors that travel inside the compiler: docs/errors/.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace ppcc {

/// The pages of a table of diagnostics, as Markdown: a section of each code,
/// whose listings are files (the name stands behind the language) and commands.
struct ErrorPages {
  llvm::StringRef name; ///< `Sema.md`.
  llvm::StringRef text;
};

llvm::ArrayRef<ErrorPages> errorPages();

} // namespace ppcc
