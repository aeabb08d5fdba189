// How much memory each rank holds while a program runs.
#pragma once

#include "ppcc/Analysis/Index/PairNumbering.h"
#include "ppcc/Analysis/Run/Simulation.h"

namespace ppcc {

/// The memory of a program, with what its model leaves out filled in: where it
/// says nothing of built-in actions, one that makes the output of a stage takes
/// one unit. One that makes the weight gradients gives back all that its
/// microbatch still holds of the stage, unless the model says what it takes or
/// gives. In a forward-only program nothing is given back by itself. O(kinds *
/// stages + settings) to make.
class MemoryModel {
public:
  explicit MemoryModel(const Program &program);

  /// What a compute action takes, or gives back when it is negative.
  Amount of(const Action &action) const {
    return scales.memory(action, table[rowOf(action)]);
  }
  /// Whether it gives back the rest.
  bool freesRemainder(const Action &action) const {
    return freesRemainderOf[rowOf(action)] != 0;
  }
  /// Whether the amounts of built-in actions are given, and no count.
  bool areAmountsGiven() const { return amountsGiven; }
  /// What the stages of a rank hold at rest.
  decimal::Sum staticOf(RankId rank) const { return staticMemory[rank.value]; }
  /// The most that a rank may hold, if that is limited.
  std::optional<Amount> limitOf(RankId rank) const;

private:
  size_t rowOf(const Action &action) const {
    return action.kind.value * stages.size() + stages(action);
  }

  StageNumbering stages;
  std::vector<Amount> table;          ///< By kind and stage.
  std::vector<char> freesRemainderOf; ///< Likewise.
  std::vector<decimal::Sum> staticMemory;
  std::vector<Amount> limits;
  MicrobatchScales scales;
  bool amountsGiven = false;
};

/// A change of what a rank holds.
struct MemoryStep {
  Time at = 0;
  ActionId row; ///< That takes at its start, or gives back at its end.
  decimal::Sum memory = 0; ///< From then on; what stages hold at rest included.
  /// From then on: pairs of stage and microbatch whose output has been begun,
  /// but whose weight gradients have not ended.
  int64_t activations = 0;
};

/// The most that a rank holds.
struct MemoryPeak {
  decimal::Sum memory = 0;     ///< The largest.
  Time at = 0;                 ///< When it is first reached,
  std::optional<ActionId> row; ///< by this action; none at rest.
  decimal::Sum last = 0;       ///< At the end of the program.
  int64_t activations = 0;     ///< The largest.
};

/// What the microbatches under way hold of a stage.
struct HeldMemory {
  PipeId pipe;
  StageId stage;
  uint32_t first = 0, last = 0; ///< The smallest and the largest microbatch.
  uint32_t count = 0;           ///< Of microbatches.
  decimal::Sum amount = 0;
};

/// Follows what ranks hold, action by action. 16 bytes a pair of stage and
/// microbatch.
class MemoryCurve {
public:
  MemoryCurve(const Program &program, const Simulation &simulation);

  /// Calls `visit` for each change on a rank, in order of time, until it gives
  /// false. The members of a group take when it starts, and give back when it
  /// ends. What another action restores is given back too. O(actions of the
  /// rank), and a sort of them where some run beside the others.
  void walk(RankId rank, function_ref<bool(const MemoryStep &)> visit);
  /// What is held at the moment where the last walk over `rank` stopped, by
  /// pipe and stage. O(actions of the rank).
  std::vector<HeldMemory> held(RankId rank) const;
  /// By a walk().
  MemoryPeak peak(RankId rank);
  /// What is held at the peak. By a walk().
  std::vector<HeldMemory> heldAt(const MemoryPeak &peak, RankId rank);

  const MemoryModel &model() const { return costs; }

private:
  /// A start or an end.
  struct Event {
    Time at;
    bool isStart;
    ActionId row;
  };
  /// By rank, in order of time.
  template <class Visit> void forEachEvent(RankId rank, Visit visit) const;
  void recordRestores(RankId rank);
  Amount restoredOf(const Action &action) const;
  /// What an action of a rank takes; the peer takes what the other gives.
  Amount takenBy(const Action &action, RankId rank) const {
    Amount amount = costs.of(action);
    return program.isPeerSide(action, rank) ? -amount : amount;
  }

  const Program &program;
  const Simulation &simulation;
  MemoryModel costs;
  const PairNumbering pairOf;
  std::vector<decimal::Sum> holds; ///< By pair.
  bool hasRestores = false;
  /// By kind and pair, of the rank that is walked over: what another action
  /// takes in its place.
  DenseMap<std::pair<uint32_t, uint64_t>, Amount> restores;
};

} // namespace ppcc
