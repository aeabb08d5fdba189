// The page of `ppcc serve`, which travels inside the compiler.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace ppcc {

struct LivePage {
  llvm::StringRef name, text;
};

llvm::ArrayRef<LivePage> livePage();

} // namespace ppcc
