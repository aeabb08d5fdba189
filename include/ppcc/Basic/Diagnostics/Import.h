// The ids of Import.def.
#pragma once
#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Basic/Diagnostics/Import.def"
