// Checks the settings of `model { }` and `comm { }` against their tables.
#pragma once

#include "ExprCheck.h"
#include "ppcc/IR/Costs.h"

namespace ppcc::sema {

/// What a setting of `model` sets, without values; nothing when its name and
/// subject name nothing.
std::optional<CostSetting> findSetting(const ast::ModelSetting &setting,
                                       const KindTable &kinds);

/// Checks names, subjects and values, and that no setting of `model` stands
/// twice; gives slots to the variables.
void checkModel(Schedule &schedule, ExprChecker &exprs);

/// Checks names and values, and that no setting of `comm` stands twice.
void checkComm(const ast::CommItem &item, const CommWords &words,
               DiagnosticEngine &diags);

} // namespace ppcc::sema
