// Checks placements: those that files declare, and who uses them.
#pragma once

#include "ExprCheck.h"

namespace ppcc::sema {

/// Enters a placement into the module and the names.
void checkPlacement(const ast::PlacementDeclItem *item, ExprChecker &exprs);

/// Checks `placement NAME(...);`.
void checkPlacementUse(const ast::PlacementItem &item, ExprChecker &exprs);

} // namespace ppcc::sema
