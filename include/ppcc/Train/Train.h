// pprun: trains a small transformer by a schedule.
#pragma once

#include "ppcc/Driver/Driver.h"

namespace ppcc {

/// Runs pprun on files of the system, whatever `call` has. Forks.
ToolMain runTraining;

} // namespace ppcc
