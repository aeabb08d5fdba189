// The ids of Expand.def.
#pragma once
#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Basic/Diagnostics/Expand.def"
