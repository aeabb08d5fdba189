// The ids of Verify.def.
#pragma once
#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Basic/Diagnostics/Verify.def"
