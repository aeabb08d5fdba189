// pprun: trains a small transformer by a schedule.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

namespace ppcc {

/// Runs pprun. `args` begin with the tool's name. Returns the exit code: 0, 1
/// for what goes wrong in the input or the run, 2 for wrong usage. Forks.
int runTraining(llvm::ArrayRef<const char *> args, llvm::raw_ostream &out,
                llvm::raw_ostream &err);

} // namespace ppcc
