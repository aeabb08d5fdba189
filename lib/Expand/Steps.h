// What follows the bodies of ranks: rules, other ends, deferred work.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/Program.h"
#include "ppcc/Model/Instance.h"
#include "ppcc/Sema/Evaluator.h"

namespace ppcc {

/// Rows of a rank whose deferred actions are left out: forwards and input
/// gradients, one by one.
struct FillRegion {
  ActionId begin, end;
  KindId kind;                ///< What is left out.
  std::optional<int64_t> lag; ///< So many may be pending.
  std::optional<int64_t> cap; ///< So many forwards may wait for their backward.
  SourceRange range;
};

/// Runs all ranks side by side, with the costs of the program and with data
/// alone to wait for, and puts the deferred actions where ranks would idle.
/// Where a region has a cap, or its rank a limit of memory, forwards go as far
/// ahead of backwards as that allows, each kind of a chunk in its order; else
/// all rows of it stay in theirs. `regions` are in the order of their rows.
/// Reports ranks that cannot hold one microbatch. O(actions * log ranks), times
/// the chunks of a rank and the microbatches under way, which are steps of the
/// evaluator.
bool fillDeferred(ArrayRef<FillRegion> regions, sema::Evaluator &evaluator,
                  DiagnosticEngine &diags, Program &program);

/// Follows the rules of a schedule, each on what those before it left. False
/// after reports. O(insertions * actions).
bool applyRules(ArrayRef<sema::BoundRule> rules, const sema::Limits &limits,
                sema::Evaluator &evaluator, const SourceManager &sources,
                DiagnosticEngine &diags, Program &program);

/// Gives each action with an end on another rank its peer, the first stage that
/// the rank hosts of the same pipe, and that rank a row of its own: after what
/// it has run when the action begins, with the costs that `addCosts` gives. So
/// all lists follow one order, in which the program can run. False after
/// reports. O(actions log ranks) where there are some.
bool insertPeerSides(function_ref<bool(Program &)> addCosts,
                     sema::Evaluator &evaluator, DiagnosticEngine &diags,
                     Program &program);

} // namespace ppcc
