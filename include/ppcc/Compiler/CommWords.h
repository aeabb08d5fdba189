// What `comm { }` may name.
#pragma once

#include "ppcc/Sema/Module.h"

namespace ppcc {

/// The transports, orders, fusions and calls that there are.
sema::CommWords commWords();

} // namespace ppcc
