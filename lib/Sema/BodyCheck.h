// Checks statements, and the functions and blocks that they call.
#pragma once

#include "Bodies.h"
#include "ExprCheck.h"

namespace ppcc::sema {

/// Enters a `fn` or a `block` into the module and the names.
void checkFunction(const ast::FunctionItem *item, ExprChecker &exprs);
void checkBlock(const ast::BlockItem *item, ExprChecker &exprs);

/// Checks what stands in a body, but for the names in graphs.
void checkBody(ast::Body statements, BodyOf of, ExprChecker &exprs);
void checkStatement(const ast::Stmt *statement, BodyOf of, ExprChecker &exprs);

} // namespace ppcc::sema
