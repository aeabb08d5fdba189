// The text that pprun learns when it is given none.
#pragma once

#include "llvm/ADT/ArrayRef.h"

namespace ppcc {

struct Page {
  const char *name, *text;
};

/// ppcc's own pages: some 50 KB.
llvm::ArrayRef<Page> defaultText();

} // namespace ppcc
