// Checks the declarations of actions.
#pragma once

#include "ExprCheck.h"

namespace ppcc::sema {

/// Enters the names of the actions among `items`, so that they can speak of
/// each other.
void declareActions(llvm::ArrayRef<const ast::Stmt *> items,
                    ExprChecker &exprs);
/// Fills in what they say of themselves.
void checkActions(llvm::ArrayRef<const ast::Stmt *> items, ExprChecker &exprs);

/// Any kind, messages included; reports a name that is none.
std::optional<KindId> kindCalled(const ast::Identifier &name,
                                 ExprChecker &exprs);

} // namespace ppcc::sema
