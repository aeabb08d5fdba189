// Checks models and clusters.
#pragma once

#include "ExprCheck.h"

namespace ppcc::sema {

/// Checks a `model` or a `cluster`: names, subjects and values, and that
/// nothing is set twice. `within` is the schedule around it, if any, whose
/// names it sees.
Section checkSection(const ast::Stmt *item, const Schedule *within,
                     const CommWords &words, ExprChecker &exprs);

/// Checks the tensors of a clause, apart from its stages.
void checkTensors(const ast::TensorsItem &clause, ExprChecker &exprs);

} // namespace ppcc::sema
