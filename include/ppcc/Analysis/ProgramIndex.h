// Finds the action that does a given piece of work, and the neighbours of a
// stage, in constant time.
#pragma once

#include "ppcc/Analysis/RuleIndex.h"
#include "ppcc/Support/LLVM.h"

#include "llvm/ADT/bit.h"

namespace ppcc {

/// For each pipe, stage, microbatch and slot the first action that fills the
/// slot; and the edges of the stages. O(actions + slots) to make, 4 bytes a
/// slot. It does not follow changes of the program.
class ProgramIndex {
public:
  explicit ProgramIndex(const Program &program);

  /// False when the program is far too short for its stages and microbatches;
  /// definer() then knows nothing.
  bool fits() const { return hasSlots; }
  /// Pairs of stage and microbatch in all pipes.
  uint64_t numPairs() const { return pairs; }

  /// The first compute action that fills `slotBit` of a stage and microbatch,
  /// or nothing.
  std::optional<ActionId> definer(PipeId pipe, StageId stage,
                                  uint32_t microbatch, uint8_t slotBit) const {
    if (!hasSlots)
      return std::nullopt;
    const PipeRow &row = pipes[pipe.value];
    uint64_t pair = row.firstPair +
                    uint64_t(stage.value) * row.numMicrobatches +
                    (microbatch - row.firstMicrobatch);
    uint32_t id = definers[pair * slot::count + std::countr_zero(slotBit)];
    return id == none ? std::nullopt : std::optional(ActionId(id));
  }

  /// As ppcc::sourcesOf, without its search.
  ArrayRef<StageId> sourcesOf(PipeId pipe, StageId stage,
                              uint8_t slotBit) const {
    return slotBit == slot::WeightGrad
               ? ArrayRef<StageId>()
               : edges(slotBit == slot::Output ? below : above, pipe, stage);
  }
  /// As ppcc::readersOf, without its search.
  ArrayRef<StageId> readersOf(PipeId pipe, StageId stage,
                              uint8_t slotBit) const {
    return slotBit == slot::WeightGrad
               ? ArrayRef<StageId>()
               : edges(slotBit == slot::Output ? above : below, pipe, stage);
  }

  /// What the rules of declared kinds ask for.
  const RuleIndex &rules() const { return ruleIndex; }

private:
  /// The stages on one side of each stage: those of stage s of all stages are
  /// ends[starts[s]] to ends[starts[s + 1]].
  struct EdgeTable {
    std::vector<uint32_t> starts{0};
    std::vector<StageId> ends;
  };
  struct PipeRow {
    uint64_t firstPair;
    uint32_t firstStage, firstMicrobatch, numMicrobatches;
  };
  static constexpr uint32_t none = 0xFFFFFFFF;

  ArrayRef<StageId> edges(const EdgeTable &table, PipeId pipe,
                          StageId stage) const {
    size_t row = pipes[pipe.value].firstStage + stage.value;
    return ArrayRef(table.ends)
        .slice(table.starts[row], table.starts[row + 1] - table.starts[row]);
  }
  void addEdges(const Pipe &pipe, bool upward);
  void addDefiners(const Program &program);

  std::vector<PipeRow> pipes;
  EdgeTable below, above;
  std::vector<uint32_t> definers;
  uint64_t pairs = 0;
  bool hasSlots = false;
  RuleIndex ruleIndex;
};

/// Calls `visit(slotBit)` for each slot of the set.
template <class Visit> void forEachSlot(uint8_t slots, Visit visit) {
  for (; slots; slots &= slots - 1)
    visit(static_cast<uint8_t>(slots & -slots));
}

/// Calls `visit(slotBit, reader)` for each result of `producer` that a stage on
/// another rank reads.
template <class Visit>
void forEachMessage(const Program &program, const ProgramIndex &index,
                    const Action &producer, Visit visit) {
  const Pipe &pipe = program.pipe(producer.pipe);
  RankId home = pipe.rankOfStage[producer.stage.value];
  forEachSlot(program.kindOf(producer).defines, [&](uint8_t slotBit) {
    for (StageId reader :
         index.readersOf(producer.pipe, producer.stage, slotBit))
      if (pipe.rankOfStage[reader.value] != home)
        visit(slotBit, reader);
  });
}

} // namespace ppcc
