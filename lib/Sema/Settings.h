// Checks the settings of `model { }` and `comm { }` against their tables.
#pragma once

#include "ExprCheck.h"

namespace ppcc::sema {

/// Checks names, subjects and values, and that no setting of `model` stands
/// twice; gives slots to the variables.
void checkModel(Schedule &schedule, ExprChecker &exprs);

/// Checks names and values, and that no setting of `comm` stands twice.
void checkComm(const ast::CommItem &item, const CommWords &words,
               DiagnosticEngine &diags);

} // namespace ppcc::sema
