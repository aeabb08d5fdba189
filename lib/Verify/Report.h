// What the checks share in speaking of actions.
#pragma once

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/IR/Place.h"
#include "ppcc/Pass/Pass.h"

#include <fmt/format.h>

namespace ppcc {

/// The cell of a row.
inline std::string cell(const Program &program, ActionId id) {
  return cell(program, program[id]);
}

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

} // namespace ppcc
