// Checks layers, stage graphs and patterns, their expressions apart.
#pragma once

#include "ppcc/Sema/Module.h"

namespace ppcc::sema {

/// Checks what stands where, and every name: layers, actions, directions, and
/// the nodes that patterns place. O(statements).
void checkGraphs(const Schedule &schedule, const KindTable &kinds,
                 DiagnosticEngine &diags);

} // namespace ppcc::sema
