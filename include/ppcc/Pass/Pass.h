// One step over a program.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/Program.h"

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

} // namespace ppcc
