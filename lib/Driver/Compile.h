// Compiles what a command works on, and the commands beside compiling.
#pragma once

#include "Options.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ppcc {

/// Takes a verified program, and the transport that it runs on; false after
/// reports.
using TakeProgram = llvm::function_ref<bool(const Program &program,
                                            const Transport &transport)>;

/// Compiles the input of `options` and hands the program to `take` instead of
/// writing it.
ExitCode compile(const Options &options, SourceManager &sources,
                 DiagnosticEngine &diags, llvm::raw_ostream &err,
                 TakeProgram take);

/// `ppcc compare`: a table of the figures of several schedules. `args` begin
/// with the command.
int runCompare(llvm::ArrayRef<const char *> args,
               llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> fs,
               llvm::raw_ostream &out, llvm::raw_ostream &err);

/// `ppcc diff`: where two programs first differ. `args` begin with the command.
int runDiff(llvm::ArrayRef<const char *> args,
            llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> fs,
            llvm::raw_ostream &out, llvm::raw_ostream &err);

} // namespace ppcc
