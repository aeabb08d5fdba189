// Checks the settings of `model { }` and `comm { }` against their tables.
#pragma once

#include "ppcc/Sema/Module.h"

namespace ppcc::sema {

/// Checks names and subjects, and that no setting of `model` stands twice. The
/// values are for the caller, who knows their scope.
void checkModel(const ast::ModelItem &item, const KindTable &kinds,
                DiagnosticEngine &diags);

/// Checks names and values, and that no setting of `comm` stands twice.
void checkComm(const ast::CommItem &item, const CommWords &words,
               DiagnosticEngine &diags);

} // namespace ppcc::sema
