// Checks layers and patterns, their expressions apart.
#pragma once

#include "ppcc/Sema/Module.h"

namespace ppcc::sema {

/// Checks every name in the layers and patterns of a model: actions, layers,
/// what layers say of themselves, and the nodes that patterns place.
/// O(statements).
void checkGraphs(const Section &model, const KindTable &kinds,
                 DiagnosticEngine &diags);

} // namespace ppcc::sema
