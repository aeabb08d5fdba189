// Runs passes one after another.
#pragma once

#include "ppcc/IR/Text.h"
#include "ppcc/Pass/Pass.h"

namespace ppcc {

/// A pass under its name.
struct NamedPass {
  std::string name;
  PassKind kind;
  Pass pass;
};

/// The passes of a pipeline, in order.
using Pipeline = std::vector<NamedPass>;

/// What is watched while passes run.
struct Instrumentation {
  bool printAfterAll = false;
  std::vector<std::string> printAfter; ///< Names of passes.
  PrintOptions print;                  ///< How programs are printed.
  bool timePasses = false; ///< Write a table of the times at the end.
  const Pipeline *verifyEach = nullptr; ///< Run on the input and after each
                                        ///< pass that changed the program.
  raw_ostream *out = &llvm::nulls();    ///< Where the above goes.
};

/// Runs `pipeline` on `program`. After an error only passes that can judge such
/// a program run; none that changes it does. False when errors were reported.
bool runPipeline(const Pipeline &pipeline, Program &program,
                 PassContext &context,
                 const Instrumentation &instrumentation = {});

} // namespace ppcc
