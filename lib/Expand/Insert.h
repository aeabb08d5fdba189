// Adds the actions that rules insert.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Model/Instance.h"

namespace ppcc {

/// Follows the rules of a schedule, each on what those before it left. False
/// after reports. O(insertions * actions).
bool applyRules(ArrayRef<sema::BoundRule> rules, const sema::Limits &limits,
                sema::Evaluator &evaluator, const SourceManager &sources,
                DiagnosticEngine &diags, Program &program);

} // namespace ppcc
