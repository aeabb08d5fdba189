// Evaluates the stage graph of a schedule.
#pragma once

#include "ppcc/Sema/Instance.h"

namespace ppcc::sema {

/// Fills Head::nodes, for each stage of each pipe of `program`, and checks
/// that the patterns suit them. Reports every error. O(stages * layers + nodes
/// of graphs that differ, times the patterns).
void buildGraphs(const Schedule &schedule, const Limits &limits,
                 Evaluator &evaluator, Head &program, DiagnosticEngine &diags);

} // namespace ppcc::sema
