// Tells programs from schedules.
#pragma once

#include "Options.h"

namespace ppcc {

/// The format of the program that is the input, or null for a schedule: that
/// of `--from`, of the file's extension, or of how its text begins.
const Importer *programFormat(const Options &options, llvm::StringRef fileName,
                              llvm::StringRef text);

/// What is wrong with the options for an input that is a program, or a
/// schedule; empty when nothing is.
llvm::StringRef misusedOption(const Options &options, bool isProgram);

/// The size above which the input is refused: a program is long, other than a
/// schedule.
size_t maxInputBytes(const Options &options, llvm::StringRef fileName,
                     llvm::StringRef begin);

} // namespace ppcc
