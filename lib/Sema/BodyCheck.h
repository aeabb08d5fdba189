// Checks statements, and the functions and blocks that they call.
#pragma once

#include "ExprCheck.h"

namespace ppcc::sema {

/// Enters a `fn` or a `block` into the module and the names.
void checkFunction(const ast::FunctionItem *item, ExprChecker &exprs);
void checkBlock(const ast::BlockItem *item, ExprChecker &exprs);

/// Checks the body of `on rank`.
void checkBody(ast::Body statements, ExprChecker &exprs);

} // namespace ppcc::sema
