// The ids of Import.def.
#pragma once

#include "ppcc/Basic/Diagnostics.h"

#define DIAG PPCC_DECLARE_DIAG
#include "ppcc/Basic/Diagnostics/Import.def"
#undef DIAG
