// The steps of instantiate(), each on what those before it left.
#pragma once

#include "ppcc/Model/Instance.h"

namespace ppcc::sema {

/// The values that are given to parameters; null for the default.
using GivenValues = std::vector<const ParamValue *>;

/// Finds out which parameters are meant, of each owner. Reports what is
/// unknown, given twice, or of several owners.
std::vector<GivenValues> assignValues(ArrayRef<ParamValue> values,
                                      ArrayRef<Owner> owners,
                                      DiagnosticEngine &diags);

/// What the steps work on.
struct InstantiationContext {
  const Limits &limits;
  Evaluator &evaluator;
  Instance &instance;
  DiagnosticEngine &diags;
  Head &head = instance.program;
};

/// Where the layout of a model stands.
Location locationOfLayout(const Section *model, const LayoutOverride &given);

/// Gives the parameters their values, and evaluates what the head says of
/// itself: `let`, `require` and, of a schedule, `ranks` and `backward`.
/// `schedule` is null for a model or a cluster.
void evaluateHead(const Declaration &declaration, const Schedule *schedule,
                  const GivenValues &values,
                  const InstantiationContext &context);

/// Whether the value of a parameter lies in its range, which is evaluated in
/// the frame at hand. Reports at `place` when it does not.
bool isInRange(const ast::Parameter &param, Type type, Value value,
               const Location &place, Evaluator &evaluator,
               DiagnosticEngine &diags);

/// Evaluates the pipes: where stages are, their edges, their
/// microbatches. `layout` is where the layout is given.
void evaluatePipes(const Schedule &schedule, const Location &layout,
                   const InstantiationContext &context);

/// Evaluates the costs that declarations of actions tell, in units of those of
/// F, which the model gives.
void evaluateDeclaredCosts(const InstantiationContext &context);

/// The value of a setting; 0, and a report, when it is none.
int64_t evaluateCost(const ast::SettingItem &setting,
                     const InstantiationContext &context);

/// Evaluates the costs of a model or a cluster.
void evaluateCosts(const Section &section, const InstantiationContext &context);

} // namespace ppcc::sema
