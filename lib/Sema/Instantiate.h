// The steps of instantiate(), each on what those before it left.
#pragma once

#include "ppcc/Sema/Instance.h"

namespace ppcc::sema {

/// Gives the parameters their values, and evaluates what the head says of
/// itself: `let`, `require`, `ranks` and `backward`.
void evaluateHead(const Schedule &schedule, llvm::ArrayRef<ParamValue> values,
                  Evaluator &evaluator, Head &program, DiagnosticEngine &diags);

/// Evaluates the pipes and the modules: where stages are, their edges, their
/// microbatches. `layout` is where the layout is given.
void evaluatePipes(const Schedule &schedule, const Place &layout,
                   const Limits &limits, Evaluator &evaluator,
                   Instance &instance, DiagnosticEngine &diags);

/// Evaluates the costs of declared actions and those of `model`.
void evaluateCosts(const Schedule &schedule, const Limits &limits,
                   Evaluator &evaluator, Head &program,
                   DiagnosticEngine &diags);

} // namespace ppcc::sema
