// The parts of html pages: the files of lib/Emit/html/.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// A part of each page.
struct ViewerFile {
  StringRef name; ///< `viewer.js`.
  StringRef text;
};

/// All parts, by name.
ArrayRef<ViewerFile> viewerFiles();

} // namespace ppcc
