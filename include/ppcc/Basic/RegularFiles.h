// The files of this machine that have an end.
#pragma once

#include "ppcc/Support/LLVM.h"
#include "llvm/Support/VirtualFileSystem.h"

namespace ppcc {

/// The real file system without pipes, devices and sockets, which may block or
/// have no end: opening one is an error, also when it takes the place of a file
/// meanwhile.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> regularFiles();

/// What is said of them.
inline constexpr StringRef notRegularMessage = "it is not a regular file";

} // namespace ppcc
