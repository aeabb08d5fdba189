// Finds the action that does a given piece of work, the neighbours of a stage,
// and what rules name, in constant time.
#pragma once

#include "ppcc/Analysis/Index/PairNumbering.h"
#include "ppcc/IR/Program.h"
#include "ppcc/Support/LLVM.h"

#include "llvm/ADT/bit.h"

namespace ppcc {

/// The rules of a program's declared kinds, applied to its rows. All that they
/// speak of is on one rank; only collectives lead to others. Of several rows
/// for the same work the first counts. Nothing is stored for a program without
/// declared kinds; else 4 bytes a row and what the rules ask for. O(actions) to
/// make. It does not follow changes of the program.
class RuleIndex {
public:
  explicit RuleIndex(const Program &program);

  /// The rows of its rank that must have ended before `row` starts, beside
  /// those that fill the slots that it reads. Where a
  /// kind has a cap, those that make room for the ones before `row`, too.
  ArrayRef<ActionId> neededBy(ActionId row) const {
    if (starts.empty())
      return {};
    return ArrayRef(needs).slice(starts[row.value],
                                 starts[row.value + 1] - starts[row.value]);
  }

  /// A row whose rule speaks of actions that the program does not have.
  struct UnmetRule {
    ActionId row;
    uint32_t rule; ///< Of its kind.
  };
  /// In the order of their rows.
  ArrayRef<UnmetRule> unmetRules() const { return unmet; }

  /// The collectives, and whether a row joins one of them.
  size_t numCollectives() const { return collectiveStarts.size() - 1; }
  std::optional<uint32_t> collectiveOf(ActionId row) const {
    auto found = collectiveOfRow.find(row.value);
    return found == collectiveOfRow.end() ? std::nullopt
                                          : std::optional(found->second);
  }
  /// The rows of a collective, one a rank, ascending.
  ArrayRef<ActionId> members(uint32_t collective) const {
    return ArrayRef(memberRows)
        .slice(collectiveStarts[collective],
               collectiveStarts[collective + 1] - collectiveStarts[collective]);
  }

private:
  using Edges = std::vector<std::pair<ActionId, ActionId>>;

  void addNeeds(const Program &program);
  void addCaps(const Program &program, Edges &edges);
  void addCollectives(const Program &program);

  std::vector<uint32_t> starts; ///< Of each row, in `needs`.
  std::vector<ActionId> needs;
  std::vector<UnmetRule> unmet;
  DenseMap<uint32_t, uint32_t> collectiveOfRow;
  std::vector<uint32_t> collectiveStarts{0};
  std::vector<ActionId> memberRows;
};

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
  uint64_t numPairs() const { return pairs.size(); }

  /// The first compute action that fills `slotBit` of a stage and microbatch,
  /// or nothing.
  std::optional<ActionId> definer(PipeId pipe, StageId stage,
                                  uint32_t microbatch, uint8_t slotBit) const {
    if (!hasSlots)
      return std::nullopt;
    uint32_t id = definers[slotOf(pairs(pipe, stage, microbatch), slotBit)];
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
  /// A stage, of all stages, and one that it reads, or that reads it.
  using StageEnd = std::pair<uint32_t, StageId>;
  /// The stages on one side of each stage: those of stage s of all stages are
  /// ends[starts[s]] to ends[starts[s + 1]], ascending.
  struct EdgeTable {
    std::vector<uint32_t> starts;
    std::vector<StageId> ends;
    void fill(std::vector<StageEnd> edges, size_t stages);
  };
  static constexpr uint32_t none = 0xFFFFFFFF;

  ArrayRef<StageId> edges(const EdgeTable &table, PipeId pipe,
                          StageId stage) const {
    size_t row = stages(pipe, stage);
    return ArrayRef(table.ends)
        .slice(table.starts[row], table.starts[row + 1] - table.starts[row]);
  }
  static size_t slotOf(size_t pair, uint8_t slotBit) {
    return pair * slot::count + std::countr_zero(slotBit);
  }
  void addDefiners(const Program &program);

  PairNumbering pairs;
  StageNumbering stages;
  EdgeTable below, above;
  std::vector<uint32_t> definers;
  bool hasSlots = false;
  RuleIndex ruleIndex;
};
} // namespace ppcc
