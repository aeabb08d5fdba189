// The schedules that travel inside the compiler: the files of lib/schedules/.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace ppcc {

/// A file of the library.
struct LibraryFile {
  llvm::StringRef name; ///< `dualpipe.pp`.
  llvm::StringRef text;
};

/// All files of the library, by name.
llvm::ArrayRef<LibraryFile> scheduleLibrary();

} // namespace ppcc
