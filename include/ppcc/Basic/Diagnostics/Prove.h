// The ids of Prove.def.
#pragma once

#include "ppcc/Basic/Diagnostics.h"

#define DIAG PPCC_DECLARE_DIAG
#include "ppcc/Basic/Diagnostics/Prove.def"
#undef DIAG
