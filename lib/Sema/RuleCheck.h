// Checks rules, the insertions in them, and who follows them.
#pragma once

#include "ExprCheck.h"

namespace ppcc::sema {

/// Enters a rule into the module and the names.
void checkRule(const ast::RuleItem *item, ExprChecker &exprs);

/// Enters an `insert` of a schedule as a rule without parameters.
Application checkInsert(const ast::InsertItem *item, ExprChecker &exprs);

/// Checks a `with` and adds it to `list`.
void checkApply(const ast::ApplyItem *item, ExprChecker &exprs,
                std::vector<Application> &list);

} // namespace ppcc::sema
