// Makes the graphs of stages from those of layers.
#pragma once

#include "Layers.h"

namespace ppcc::sema {

/// Fills Head::nodes, for each stage of each pipe of `program`, with the nodes
/// of its layers one after another, and checks that the patterns suit them.
/// Reports every error. O(layers of all stages + nodes of graphs that differ,
/// times the patterns).
void buildGraphs(const Section &model, const Cut &cut, const Limits &limits,
                 Evaluator &evaluator, Head &program, DiagnosticEngine &diags);

} // namespace ppcc::sema
