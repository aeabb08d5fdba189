// Puts the other ends of actions between two ranks into the lists of those.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Sema/Evaluator.h"

namespace ppcc {

/// Gives each action with an end on another rank its peer, the first stage that
/// the rank hosts of the same pipe, and that rank a row of its own: after what
/// it has run when the action begins, with the costs that `addCosts` gives. So
/// all lists follow one order, in which the program can run. False after
/// reports. O(actions log ranks) where there are some.
bool insertPeerSides(function_ref<bool(Program &)> addCosts,
                     sema::Evaluator &evaluator, DiagnosticEngine &diags,
                     Program &program);

} // namespace ppcc
