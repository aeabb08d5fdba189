// From a schedule with values to the flat program of each rank.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Model/Instance.h"

namespace ppcc {

/// Runs the body of `on rank` for every rank and writes down the actions in
/// their order. Reports what a rank's program does wrong by itself: chunks and
/// microbatches that do not exist, W's without an I or never taken, loops
/// without an end, too many actions. What ranks do to each other is for Verify.
/// `addCosts` gives a program the costs that it will have, where the order
/// follows from them. Gives nothing after an error. O(steps of the schedule),
/// 16 bytes an action.
std::optional<Program>
expand(const sema::Module &module, sema::Instance instance,
       const sema::Limits &limits, sema::Evaluator &evaluator,
       const SourceManager &sources, function_ref<bool(Program &)> addCosts,
       DiagnosticEngine &diags);

} // namespace ppcc
