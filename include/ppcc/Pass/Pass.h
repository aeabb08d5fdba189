// Steps over a program, which run one after another.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/PrintOptions.h"

namespace ppcc {

/// What a pass has at hand beside the program.
struct PassContext {
  SourceManager &sources;
  DiagnosticEngine &diags;
  /// The transports under which the running pass has proven the program.
  std::vector<std::string> proven;

  PassContext(SourceManager &sources, DiagnosticEngine &diags)
      : sources(sources), diags(diags) {}
};

/// What a pass did: `Failed` when it could not change what it should, else
/// whether the program differs from before.
enum class PassResult : uint8_t { Unchanged, Changed, Failed };

/// How much of a program a pass changes, from little to much; and what it
/// takes.
enum class PassKind : uint8_t {
  CheckAlways, ///< Nothing; it judges programs in which errors were found, too.
  Check,       ///< Nothing.
  Facts,       ///< What is known of the rows, which stay as they are.
  Rewrite,     ///< Rows.
  Loops,       ///< The same; it takes programs with loops, too.
};

/// A step over a program. Passes have no state: the same one may run twice.
using Pass = std::function<PassResult(Program &program, PassContext &context)>;

/// The pass that lets `check` judge the program and leaves it as it is.
template <class Check> Pass checkPass(Check check) {
  return [check = std::move(check)](Program &program, PassContext &context) {
    check(std::as_const(program), context);
    return PassResult::Unchanged;
  };
}

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
  /// What prints programs, and how.
  void (*printProgram)(const Program &program, raw_ostream &out,
                       const PrintOptions &options) = nullptr;
  PrintOptions print;
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
