// Programs with messages.
#pragma once

#include "ppcc/Transforms/Passes.h"

#include <gtest/gtest.h>

namespace ppcc {

/// The program with the messages that it needs, in this order; a diagnostic
/// fails the test.
inline Program injected(const Program &program, llvm::StringRef order) {
  SourceManager sources(llvm::vfs::getRealFileSystem());
  DiagnosticEngine diags(
      [](const Diagnostic &found) { ADD_FAILURE() << found.message; });
  return *injectComm(program, {*findCommOrder(order)}, diags, sources);
}

} // namespace ppcc
