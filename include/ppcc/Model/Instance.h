// A schedule with values for its parameters: everything but the actions.
#pragma once

#include "ppcc/IR/Head.h"
#include "ppcc/IR/Rows.h"
#include "ppcc/Sema/Evaluator.h"

namespace ppcc::sema {

/// A `-D NAME=VALUE`.
struct ParamValue {
  std::string name, value;
};

/// What a schedule may expand to.
struct Limits {
  uint64_t maxActions = 10'000'000;
  /// Iterations of loops, statements and calls, counted together.
  uint64_t maxSteps() const {
    return maxActions > UINT64_MAX / 5 ? UINT64_MAX : maxActions * 5;
  }
};

/// What is compiled together. Without a model or cluster, that of the schedule
/// counts, if it has one.
struct Selection {
  const Schedule *schedule = nullptr;
  const Section *model = nullptr, *cluster = nullptr;
  /// Those of the model and the cluster, where they say any.
  Units units() const;
};

/// Who has parameters: `schedule`, `model` or `cluster`.
struct Owner {
  StringRef word;
  const Declaration *declaration = nullptr;
};
std::vector<Owner> ownersOf(const Selection &selection);
/// Whether some owner has a parameter of the name, as after `-D`.
bool hasParameter(StringRef name, ArrayRef<Owner> owners);

/// A rule with values for its parameters.
struct BoundRule {
  const Rule *rule = nullptr;
  SourceRange range; ///< Where it is applied.
  std::vector<Value> args;
};

/// What a value of type `pipe` or `part` stands for: stages of pipes.
struct StageSet {
  struct Stages {
    PipeId pipe;
    uint32_t from = 0, to = 0; ///< `to` is not one of them.
  };
  std::string name;
  SmallVector<Stages, 1> stages; ///< By pipe.

  bool has(PipeId pipe, StageId stage) const {
    return llvm::any_of(stages, [&](const Stages &of) {
      return of.pipe == pipe && stage.value >= of.from && stage.value < of.to;
    });
  }
};

/// A schedule with its parameters bound.
struct Instance {
  const Schedule *schedule = nullptr;
  Head program;
  std::vector<uint64_t> padded; ///< By pipe: microbatches that the order counts
                                ///< with, real ones included.
  std::vector<StageSet> parts;  ///< By value: the pipes, then the parts.
  std::vector<BoundRule> rules; ///< In the order in which they are followed.
  std::vector<const ast::OnRankItem *>
      onRanks;                ///< By rank, where not one is for all.
  const Rows *rows = nullptr; ///< What ranks do, in place of their bodies.

  /// What a rank does.
  const ast::OnRankItem *onRank(RankId rank) const {
    return schedule->onRank ? schedule->onRank : onRanks[rank.value];
  }
};

/// A layout that is given from outside, in place of that of the model: the
/// layers of each stage, or how its sequence is cut.
struct LayoutOverride {
  std::vector<std::string> stages;
  std::optional<bool> isByCost;
  Location place{"--layout"}; ///< Where `stages` stand.
};

/// Binds the parameters, checks every `require`, and evaluates the header:
/// ranks, pipes, placements, edges, costs. Leaves the values of the globals in
/// `evaluator`. Reports every error; gives nothing when there was one.
/// O(parameters + stages + edges).
std::optional<Instance> instantiate(const Selection &selection,
                                    ArrayRef<ParamValue> values,
                                    const LayoutOverride &layout,
                                    const Limits &limits, Evaluator &evaluator,
                                    DiagnosticEngine &diags);

/// The values that `comm { }` gives to a setting, as written; none when it does
/// not speak of it.
ArrayRef<ast::Entry> commSetting(const Schedule &schedule, StringRef name);

} // namespace ppcc::sema
