// One step over a program.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/Program.h"
#include "ppcc/Pass/AnalysisCache.h"

namespace ppcc {

/// What a pass has at hand beside the program.
struct PassContext {
  SourceManager &sources;
  DiagnosticEngine &diags;
  AnalysisCache analyses;
  /// The transports under which the running pass has proven the program.
  std::vector<std::string> proven;

  PassContext(SourceManager &sources, DiagnosticEngine &diags)
      : sources(sources), diags(diags) {}
};

/// What a pass did: `Failed` when it reported errors, else whether the program
/// differs from before.
enum class PassResult : uint8_t { Unchanged, Changed, Failed };

/// A step over a program. Passes have no state: the same object may run twice.
class Pass {
public:
  virtual ~Pass() = default;
  virtual PassResult run(Program &program, PassContext &context) const = 0;
  /// Whether it only reads the program.
  virtual bool isReadOnly() const { return false; }
  /// Whether it leaves the rows as they are, so that what is known of them
  /// stays true.
  virtual bool keepsRows() const { return isReadOnly(); }
  /// Whether it takes programs with loops; the others take flat ones only.
  virtual bool takesLoops() const { return false; }
  /// Whether it can judge a program in which errors were found already.
  virtual bool runsAfterErrors() const { return false; }
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
  bool isReadOnly() const final { return true; }
};

} // namespace ppcc
