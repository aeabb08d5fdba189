// The ids of Transforms.def.
#pragma once

#include "ppcc/Basic/Diagnostics.h"

#define DIAG PPCC_DECLARE_DIAG
#include "ppcc/Basic/Diagnostics/Transforms.def"
#undef DIAG
