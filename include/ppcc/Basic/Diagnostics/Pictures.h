// The ids of Pictures.def.
#pragma once

#include "ppcc/Basic/Diagnostics.h"

#define DIAG PPCC_DECLARE_DIAG
#include "ppcc/Basic/Diagnostics/Pictures.def"
#undef DIAG
