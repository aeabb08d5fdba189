// Answers editors: the language server protocol, version 3.17.
#pragma once

#include "ppcc/Compiler/Compiler.h"

namespace ppcc::lsp {

/// Reads the words of a command line of `ppcc`, its name first, into a request.
/// Gives what is wrong with them, or nothing.
using ReadOptions = std::string (*)(ArrayRef<const char *> args,
                                    Request &request);

/// Answers what comes on standard input, up to its end, on `out`. True if the
/// editor has shut it down.
bool serve(Session::Files files, StringRef version, ReadOptions readOptions,
           raw_ostream &out);

} // namespace ppcc::lsp
