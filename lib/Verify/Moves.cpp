// Checks that no two actions move the same away from a rank.
#include "ProgramCheck.h"
#include "ppcc/Analysis/Report/MemoryCurve.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

/// Follows what declared actions give away of what a stage keeps of a
/// microbatch, and what they bring back.
struct MoveChecker : ProgramCheck {
  void check() {
    if (!canConflict())
      return;
    MemoryModel model(program);
    kept.resize(pairOf.size());
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank)) {
        Action action = program[row];
        if (program.kindOf(action).isCompute() && action.hasMicrobatch() &&
            !program.isPeerSide(action, rank))
          follow(row, action, model.of(action));
        if (isSaturated())
          return;
      }
  }

  struct Kept {
    decimal::Sum taken = 0, away = 0;
    ActionId mover; ///< The last that moved some of it away.
  };

  /// Whether several kinds move something away.
  bool canConflict() const {
    BitVector movers(program.kinds().size());
    for (const CostSetting &setting : program.costs().of(Cost::Memory))
      if (program.kinds()[setting.kind].isDeclared() &&
          llvm::any_of(setting.values, [](Amount value) { return value < 0; }))
        movers.set(setting.kind.value);
    return movers.count() > 1;
  }

  void follow(ActionId row, const Action &action, Amount amount) {
    Kept &held = kept[pairOf(action)];
    if (!program.kindOf(action).isDeclared())
      held.taken += std::max<Amount>(amount, 0);
    else if (amount >= 0)
      held.away = std::max<decimal::Sum>(held.away - amount, 0);
    else if (held.away != 0 && held.away - amount > held.taken)
      reportMovedTwice(row, action, held.mover);
    else
      held.away -= amount, held.mover = row;
  }

  void reportMovedTwice(ActionId row, const Action &action,
                        ActionId mover) const {
    report<diag::MovedTwice>(row, cell(row), cell(mover))
        .note(place(mover),
              "`{}` moves the activation of stage {}{}, microbatch {}, and no "
              "action brings it back before",
              cell(mover), action.stage.value, ofPipe(action.pipe),
              action.microbatch);
  }

  const PairNumbering pairOf{program.pipes()};
  std::vector<Kept> kept{}; ///< By pair.
};

} // namespace

void ppcc::verifyMoves(const Program &program, PassContext &context) {
  MoveChecker{{program, context}}.check();
}
