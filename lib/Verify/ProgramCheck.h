// What the checks share to report actions.
#pragma once

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/IR/Location.h"
#include "ppcc/Pass/Pass.h"

namespace ppcc {

/// " of pipe `down`"; nothing in a program of one pipe.
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
      locationOf(program, site, context.sources), std::forward<Args>(args)...);
  noteCallers(builder, program, site, context.sources);
  return builder;
}

/// A check of one program, and how it names actions in messages.
struct ProgramCheck {
  const Program &program;
  PassContext &context;

  bool isSaturated() const { return context.diags.saturated(); }
  Location place(ActionId row) const {
    return locationOf(program, row, context.sources);
  }
  std::string cell(const Action &action) const {
    return ppcc::cell(program, action);
  }
  std::string cell(ActionId row) const { return cell(program[row]); }
  std::string ofPipe(PipeId pipe) const { return ppcc::ofPipe(program, pipe); }
  /// ` (phase steady)`, or nothing when it is in none.
  std::string phaseOf(ActionId row) const {
    const std::string &phase = program.phases()[program[row].phase.value];
    return phase.empty() ? "" : " (phase " + phase + ")";
  }
  std::string withPhase(ActionId row) const {
    return fmt::format("`{}`{}", cell(row), phaseOf(row));
  }
  template <diag::Id id, class... Args>
  DiagnosticEngine::Builder report(ActionId row, Args &&...args) const {
    return reportAt<id>(program, context, row, std::forward<Args>(args)...);
  }
};

/// The index of the program, or nothing, and errors were reported, when the
/// program is far too short for one.
inline const ProgramIndex *indexOf(const Program &program,
                                   PassContext &context) {
  const ProgramIndex &index = Analyses(program).index();
  if (index.fits())
    return &index;
  if (!context.diags.hasErrors())
    context.diags.report<diag::TooFewActions>(Location(program.name()),
                                              program.size(), index.numPairs());
  return nullptr;
}

/// A check of a program that has an index.
struct IndexedCheck : ProgramCheck {
  IndexedCheck(const Program &program, PassContext &context)
      : ProgramCheck{program, context}, index(Analyses(program).index()) {}

  const ProgramIndex &index;
};

/// Lets a Checker, an IndexedCheck, check() a program that is long enough.
template <class Checker>
void checkIndexed(const Program &program, PassContext &context) {
  if (indexOf(program, context))
    Checker(program, context).check();
}

/// The messages of the program, or nothing, and errors were reported, when it
/// is far too short for them.
const MessageIndex *messagesOf(const Program &program, PassContext &context);

/// Whether each send has its receive and each receive its send, both once;
/// reports those that have not. O(actions).
bool checkPairs(const Program &program, const MessageIndex &messages,
                PassContext &context);

/// A send and the receive that stands at its place in the order of its lane.
struct Mismatch {
  ActionId send, recv;
  uint32_t position; ///< Messages before it on its lane.
  Channel lane;
};

/// For each lane whose sends and receives are not in one order, the first place
/// where they part. Takes a program whose messages are paired. O(actions).
std::vector<Mismatch> firstMismatches(const Program &program,
                                      const MessageIndex &messages);

} // namespace ppcc
