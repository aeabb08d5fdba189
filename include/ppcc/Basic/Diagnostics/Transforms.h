// The ids of Transforms.def.
#pragma once
#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Basic/Diagnostics/Transforms.def"
