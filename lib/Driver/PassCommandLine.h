// The options that say which passes run.
#pragma once

#include "ppcc/Driver/CommandLine.h"
#include "ppcc/Pass/PassManager.h"

namespace ppcc {

/// Which passes run, and what is watched meanwhile.
struct PassCommandLine {
  std::string passes; ///< The pipeline as text.
  Instrumentation instrumentation;
  bool verifyEach = false, listPasses = false;
  size_t maxErrors = 100;
};

/// Adds the options that fill a PassCommandLine.
void addPassOptions(OptionParser &parser, PassCommandLine &options);

/// Runs the pipeline `text` on `program` as `options` wish. False after errors,
/// which are reported.
bool runPasses(llvm::StringRef text, const PassCommandLine &options,
               Program &program, SourceManager &sources,
               DiagnosticEngine &diags, llvm::raw_ostream &err);

} // namespace ppcc
