// Checks that no two actions move the same away from a rank, and that none
// moves what is restored later.
#include "ProgramCheck.h"
#include "ppcc/Analysis/Report/MemoryCurve.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

/// Follows what declared actions give away of what a stage keeps of a
/// microbatch, and what they bring back.
struct MoveChecker : ProgramCheck {
  void check() {
    if (!mayMoveTwice(program))
      return;
    MemoryModel model(program);
    kept.resize(pairOf.size());
    for (ActionId row : program.rows())
      if (program.kindOf(row).restores && program[row].hasMicrobatch())
        kept[pairOf(program[row])].restores = row;
    for (RankId rank : program.ranks())
      for (ActionId row : program.rows(rank)) {
        Action action = program[row];
        if (program.kindOf(action).isCompute() && action.hasMicrobatch() &&
            !program.isPeerSide(action, rank))
          follow(row, action, model);
        if (isSaturated())
          return;
      }
  }

  struct Kept {
    decimal::Sum taken = 0, away = 0;
    ActionId mover;                   ///< The last that moved some of it away.
    std::optional<ActionId> restores; ///< Restores it, so it is given up first.
  };

  void follow(ActionId row, const Action &action, const MemoryModel &model) {
    Kept &held = kept[pairOf(action)];
    Amount amount = model.of(action);
    if (!program.kindOf(action).isDeclared()) {
      held.taken += std::max<Amount>(amount, 0);
      if (held.restores &&
          program.kindOf(*held.restores).restores == action.kind) {
        held.away += std::max<Amount>(model.of(program[*held.restores]), 0);
        held.mover = *held.restores;
      }
    } else if (amount >= 0) {
      held.away = std::max<decimal::Sum>(held.away - amount, 0);
    } else if (held.away == 0 || held.away - amount <= held.taken) {
      held.away -= amount;
      held.mover = row;
    } else if (held.restores == held.mover) {
      report<diag::MovedRestored>(row, cell(row), cell(held.mover));
    } else {
      reportMovedTwice(row, action, held.mover);
    }
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

bool ppcc::mayMoveTwice(const Program &program) {
  BitVector movers(program.kinds().size());
  for (const CostSetting &setting : program.costs().of(Cost::Memory))
    if (program.kinds()[setting.kind].isDeclared() &&
        llvm::any_of(setting.values, [](Amount value) { return value < 0; }))
      movers.set(setting.kind.value);
  for (KindId kind : program.kinds().ids())
    if (program.kinds()[kind].restores)
      movers.set(kind.value);
  return movers.count() > 1;
}

void ppcc::verifyMoves(const Program &program, PassContext &context) {
  MoveChecker{{program, context}}.check();
}
