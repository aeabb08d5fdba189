// The page of `ppcc serve`, which travels inside the compiler.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc {

struct LivePage {
  StringRef name, text;
};

ArrayRef<LivePage> livePage();

} // namespace ppcc
