// The passes of ppcc.
#pragma once

#include "ppcc/Pass/PassRegistry.h"

namespace ppcc {

/// A registry with all passes of Passes.def.
PassRegistry makePassRegistry();

} // namespace ppcc
