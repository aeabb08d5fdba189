// ppcc-profile: traces in, a file of costs out.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/IntrusiveRefCntPtr.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace ppcc {

/// Runs ppcc-profile. `args` begin with the tool's name. Returns the exit code:
/// 0, 1 for errors in the input, 2 for wrong usage.
int runProfile(llvm::ArrayRef<const char *> args,
               llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> fs,
               llvm::raw_ostream &out, llvm::raw_ostream &err);

} // namespace ppcc
