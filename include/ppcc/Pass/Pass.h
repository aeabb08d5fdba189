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

/// What a pass did: `Failed` when it reported errors, else whether the program
/// differs from before.
enum class PassResult : uint8_t { Unchanged, Changed, Failed };

/// How much of a program a pass changes, from little to much; and what it
/// takes.
enum class PassKind : uint8_t {
  CheckAnyway, ///< Nothing; it judges programs in which errors were found, too.
  Check,       ///< Nothing.
  Facts,       ///< What is known of the rows, which stay as they are.
  Rewrite,     ///< Rows.
  Loops,       ///< The same; it takes programs with loops, too.
};

/// A step over a program. Passes have no state: the same object may run twice.
class Pass {
public:
  virtual ~Pass() = default;
  virtual PassResult run(Program &program, PassContext &context) const = 0;
};

/// A pass that judges the program and leaves it as it is.
class CheckPass : public Pass {
public:
  virtual void check(const Program &program, PassContext &context) const = 0;

  PassResult run(Program &program, PassContext &context) const final {
    size_t errorsBefore = context.diags.errorCount();
    check(program, context);
    return context.diags.errorCount() == errorsBefore ? PassResult::Unchanged
                                                      : PassResult::Failed;
  }
};

} // namespace ppcc
