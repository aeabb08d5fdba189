// What the checks share in speaking of actions.
#pragma once

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/IR/Place.h"
#include "ppcc/Pass/Pass.h"

namespace ppcc {

/// " of pipe `down`", behind what has a pipe; nothing when there is but one.
inline std::string ofPipe(const Program &program, PipeId pipe) {
  return program.pipes().size() == 1
             ? ""
             : fmt::format(" of pipe `{}`", program.pipe(pipe).name);
}

/// Reports `id` at a row, with the calls of blocks that led to it; `args` are
/// the diagnostic's.
template <diag::Id id, class... Args>
DiagnosticEngine::Builder reportAt(const Program &program, PassContext &context,
                                   ActionId row, Args &&...args) {
  SiteId site = program[row].site;
  auto builder = context.diags.report<id>(
      placeOf(program, site, context.sources), std::forward<Args>(args)...);
  noteCallers(builder, program, site, context.sources);
  return builder;
}

/// A check at work, and how it speaks of rows.
class Judge {
protected:
  Judge(const Program &program, PassContext &context)
      : program(program), context(context) {}

  bool isSaturated() const { return context.diags.saturated(); }
  Place place(ActionId row) const {
    return placeOf(program, row, context.sources);
  }
  std::string cell(const Action &action) const {
    return ppcc::cell(program, action);
  }
  std::string cell(ActionId row) const { return cell(program[row]); }
  std::string ofPipe(PipeId pipe) const { return ppcc::ofPipe(program, pipe); }
  /// The row, and the phase that it is in.
  std::string withPhase(ActionId row) const {
    const std::string &phase = program.phases()[program[row].phase.value];
    return fmt::format("`{}`{}", cell(row),
                       phase.empty() ? "" : " (phase " + phase + ")");
  }
  template <diag::Id id, class... Args>
  DiagnosticEngine::Builder report(ActionId row, Args &&...args) const {
    return reportAt<id>(program, context, row, std::forward<Args>(args)...);
  }

  const Program &program;
  PassContext &context;
};

/// The index of the program, or nothing, and errors were reported, when the
/// program is far too short for one.
inline const ProgramIndex *indexOf(const Program &program,
                                   PassContext &context) {
  const ProgramIndex &index = Analyses(program).index();
  if (index.fits())
    return &index;
  if (!context.diags.hasErrors())
    context.diags.report<diag::TooFewActions>(Place(program.name()),
                                              program.size(), index.numPairs());
  return nullptr;
}

/// The pass that lets a Checker, made of program, index and context, check().
template <class Checker> class IndexedPass final : public CheckPass {
public:
  void check(const Program &program, PassContext &context) const override {
    if (const ProgramIndex *index = indexOf(program, context))
      Checker{program, *index, context}.check();
  }
};

} // namespace ppcc
