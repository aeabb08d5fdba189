// The steps of instantiate(), each on what those before it left.
#pragma once

#include "ppcc/Sema/Instance.h"

namespace ppcc::sema {

/// The values that are given to parameters; null for the default.
using GivenValues = std::vector<const ParamValue *>;

/// Finds out which parameters are meant, of each owner. Reports what is
/// unknown, given twice, or of several owners.
std::vector<GivenValues> shareOut(ArrayRef<ParamValue> values,
                                  ArrayRef<Owner> owners,
                                  DiagnosticEngine &diags);

/// What the steps work on.
struct Making {
  const Limits &limits;
  Evaluator &evaluator;
  Instance &instance;
  DiagnosticEngine &diags;
  Head &head = instance.program;
};

/// Where the layout of a model stands.
Place placeOfLayout(const Section *model, const LayoutChoice &given);

/// Gives the parameters their values, and evaluates what the head says of
/// itself: `let`, `require` and, of a schedule, `ranks` and `backward`.
/// `schedule` is null for a model or a cluster.
void evaluateHead(const Declaration &declaration, const Schedule *schedule,
                  const GivenValues &values, const Making &making);

/// Whether the value of a parameter lies in its range, which is evaluated in
/// the frame at hand. Reports at `place` when it does not.
bool isInRange(const ast::Parameter &param, Type type, Value value,
               const Place &place, Evaluator &evaluator,
               DiagnosticEngine &diags);

/// Evaluates the pipes: where stages are, their edges, their
/// microbatches. `layout` is where the layout is given.
void evaluatePipes(const Schedule &schedule, const Place &layout,
                   const Making &making);

/// Evaluates the costs that declarations of actions tell, in units of those of
/// F, which the model has told.
void evaluateDeclaredCosts(const Making &making);

/// The value of a setting; 0, and a report, when it is none.
int64_t evaluateCost(const ast::SettingItem &setting, const Making &making);

/// Evaluates the costs of a model or a cluster.
void evaluateCosts(const Section &section, const Making &making);

} // namespace ppcc::sema
