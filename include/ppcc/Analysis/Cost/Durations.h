// How long each action of a program takes.
#pragma once

#include "ppcc/Analysis/Cost/NodeOrders.h"
#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// The costs of a program, with what its model leaves out filled in: a kind
/// that fills one slot takes one unit, one that fills several takes what the
/// kinds of the single slots take, a group what its members take together, and
/// an edge between ranks takes no time. Where nodes have costs, actions and
/// groups take what their nodes do on the lanes; see NodeOrders. A message
/// takes the latency of its edge and, where a bandwidth is given, its bytes
/// divided by that; the bytes follow from the tensors of the edge where they
/// are not given. What scales say of microbatches is multiplied. O(kinds *
/// stages
/// + edges with tensors + settings) to make; it does not follow changes of the
/// program, which stays where it is.
class Durations {
public:
  /// No sum of times in a program that fits() is larger.
  static constexpr Time maxSum = std::numeric_limits<Time>::max() / 4;

  explicit Durations(const Program &program);

  /// The time of a compute action by itself; messages take ofEdge() instead.
  Time of(const Action &action) const {
    return scales.time(
        action,
        table[action.kind.value * stride + (stride == 1 ? 0 : stages(action))],
        maxSum);
  }
  /// The time that the rank computes for the rows from `begin` to `end`, an
  /// action or a whole group; what runs beside that takes none of it.
  Time of(const Program &program, ActionId begin, ActionId end) const;

  /// How long before the end of its action or group a row gives to other stages
  /// what it made, and how long after the begin it needs what it reads from
  /// them; see hook in NodeGraphs.h.
  struct HookOffsets {
    Time early = 0, late = 0;
  };
  /// That of each row; empty where none has any. O(actions).
  std::vector<HookOffsets> hookOffsets(const Program &program) const;
  /// Whether any row has some.
  bool hasHookOffsets() const { return hasHooks; }

  /// The time of a microbatch's message between two stages of a pipe that are
  /// on different ranks.
  Time ofEdge(PipeId pipe, StageId from, StageId to,
              uint32_t microbatch) const {
    const EdgeCost &edgeCost = edgeCostOf(pipe, from, to);
    return edgeCost.bandwidth == 0
               ? edgeCost.latency
               : edgeCost.latency + transfer(edgeCost, pipe, microbatch);
  }
  /// The same for a send or receive.
  Time ofMessage(const Program &program, const Action &action) const {
    bool sends = program.kindOf(action).isSend();
    return ofEdge(action.pipe, sends ? action.stage : action.peer,
                  sends ? action.peer : action.stage, action.microbatch);
  }

  /// Gives every edge between ranks this time.
  void setLatency(Time time) {
    edgeCosts = {{time}};
    edgeCostOverrides.clear();
  }

  /// Whether all actions and this many messages, one after another, so many
  /// times, take at most maxSum, so that times can be added without a check.
  /// O(actions).
  bool fits(const Program &program, uint64_t messages, int times = 1) const;

private:
  /// What a message takes: this time, and that of its bytes.
  struct EdgeCost {
    Time latency = 0;
    Amount bytes = 0, bandwidth = 0; ///< 0 where the time of all is known.
    bool operator==(const EdgeCost &) const = default;
  };
  using EdgeKey = std::pair<uint64_t, uint32_t>; ///< Pipe and `from`; `to`.
  static EdgeKey keyOf(PipeId pipe, StageId from, StageId to) {
    return {uint64_t(pipe.value) << 32 | from.value, to.value};
  }
  const EdgeCost &edgeCostOf(PipeId pipe, StageId from, StageId to) const {
    if (!edgeCostOverrides.empty())
      if (auto found = edgeCostOverrides.find(keyOf(pipe, from, to));
          found != edgeCostOverrides.end())
        return found->second;
    return edgeCosts[edgeCosts.size() == 1 ? 0
                                           : stages(pipe, std::min(from, to))];
  }
  Time transfer(const EdgeCost &edgeCost, PipeId pipe,
                uint32_t microbatch) const;

  void addEdges(const Program &program);
  /// What the action takes by itself, or its nodes one after another.
  Time maxDuration(const Action &action) const;
  Time ofGroup(Time sum, Time longest) const;

  StageNumbering stages;
  size_t stride = 1; ///< Stages of all pipes; 1 when the costs are the same on
                     ///< every stage.
  std::vector<Time> table;         ///< By kind and stage.
  std::vector<EdgeCost> edgeCosts; ///< Of edges, by the lower stage; one when
                                   ///< they are the same on all.
  /// Of those of which more is known: of ranks, or tensors.
  DenseMap<EdgeKey, EdgeCost> edgeCostOverrides;
  MicrobatchScales scales;
  Cost group = Cost::GroupSum;       ///< Or GroupMax, or Overlap.
  Time ofGroups = cost::unit;        ///< The factor of the rule, or the time.
  std::shared_ptr<NodeOrders> nodes; ///< Null without costs of nodes.
  bool hasHooks = false;             ///< Of these nodes.
};

/// Of a row of all stages, those that a setting is about.
template <class T>
MutableArrayRef<T> stageRange(const CostSetting &setting,
                              const Program &program, MutableArrayRef<T> row) {
  if (!setting.pipe)
    return row;
  return row.slice(StageNumbering(program.pipes())(*setting.pipe, StageId(0)),
                   program.pipe(*setting.pipe).numStages());
}
/// Puts the values of a setting, one for all or one for each, into a row of all
/// stages: into those of its pipe, if it has one.
void broadcast(const CostSetting &setting, const Program &program,
               MutableArrayRef<int64_t> row);

} // namespace ppcc
