// The parts of html pages: the files of lib/Emit/html/.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace ppcc {

/// A part of each page.
struct ViewerFile {
  llvm::StringRef name; ///< `viewer.js`.
  llvm::StringRef text;
};

/// All parts, by name.
llvm::ArrayRef<ViewerFile> viewerFiles();

} // namespace ppcc
