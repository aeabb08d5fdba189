// Checks schedules.
#pragma once

#include "ExprCheck.h"

namespace ppcc::sema {

Schedule checkSchedule(const ast::Schedule &decl, const CommWords &words,
                       ExprChecker &exprs);

} // namespace ppcc::sema
