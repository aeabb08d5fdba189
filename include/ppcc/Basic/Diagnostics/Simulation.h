// The ids of Simulation.def.
#pragma once
#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Basic/Diagnostics/Simulation.def"
