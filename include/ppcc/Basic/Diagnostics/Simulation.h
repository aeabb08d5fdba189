// The ids of Simulation.def.
#pragma once

#include "ppcc/Basic/Diagnostics.h"

#define DIAG PPCC_DECLARE_DIAG
#include "ppcc/Basic/Diagnostics/Simulation.def"
#undef DIAG
