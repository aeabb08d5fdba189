// The digest of what all ranks of a program must agree on.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// As docs/program-format.md describes it, in hexadecimal digits; the same
/// whether loops are written out. O(rows).
std::string digestOf(const Program &program);

} // namespace ppcc
