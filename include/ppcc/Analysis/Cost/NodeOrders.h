// In which order, and when, the nodes of actions and groups run on their lanes.
#pragma once

#include "ppcc/Analysis/Cost/MicrobatchScales.h"
#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// The nodes of an action or a group, in the order in which they are launched.
struct NodeOrder {
  struct ScheduledNode {
    uint32_t member; ///< Whose node it is, counted from the first row.
    uint32_t node;   ///< In the graph of the member.
    Time start, end; ///< From the begin of the first node.
  };
  std::vector<ScheduledNode> scheduled;
  Time length = 0; ///< Until all nodes have ended.
  /// When a member needs what it reads from other stages, and when they get
  /// what it made.
  struct Member {
    Time reads = 0, gives = 0;
  };
  std::vector<Member> members;
  uint32_t number = 0; ///< Of the orders that were made before it.
  size_t timed = 0;    ///< Of the places, those that take time.
};

/// Orders the nodes of the actions and groups of a program.
///
/// Each lane runs one node at a time, in the order of launches, and a node
/// starts when those that it needs have ended. The order is that of the first
/// pattern that speaks of the actions; without one it is made by list
/// scheduling: of the nodes that could start first, the one from which the
/// longest way leads to the end. A node without a cost takes no time or, when
/// no node has one, one unit. Groups of the same graphs, of microbatches that
/// are scaled by the same, are ordered once.
class NodeOrders {
public:
  /// No time is larger; see Durations::maxSum.
  static constexpr Time maxTime = std::numeric_limits<Time>::max() / 4;

  /// O(kinds * stages + nodes). The program stays where it is.
  explicit NodeOrders(const Program &program);

  /// The graph of a compute action; GraphUse::none without one.
  uint32_t graphOf(const Action &action) const {
    return graphs[action.kind.value * stages.size() + stages(action)];
  }
  /// The same by kind and stage.
  ArrayRef<uint32_t> graphsOfKinds() const { return graphs; }
  const NodeGraph &graph(uint32_t id) const { return tables.graphs[id]; }

  /// The order for an action or a group; null when a row has no graph. It stays
  /// until the next call.
  const NodeOrder *of(const Program &program, ActionId begin, ActionId end);
  /// The order for members with these graphs, whose microbatches are scaled by
  /// nothing.
  const NodeOrder &of(ArrayRef<uint32_t> members);

  /// What the nodes of a graph take one after another, at most maxTime.
  Time serialTime(uint32_t graph);

private:
  /// A graph whose times are multiplied by `factor`.
  struct Member {
    uint32_t graph;
    int64_t factor;
    auto operator<=>(const Member &) const = default;
  };
  using Key = SmallVector<Member, 4>;
  static constexpr size_t maxCached = size_t(1) << 22;

  /// The order of the members in `key`.
  const NodeOrder &ordered();
  void findHooks(NodeOrder &order) const;
  const std::vector<Time> &timesOf(uint32_t graph);
  std::vector<Time> timesOf(const Member &member);
  /// Launches the nodes of the members in `key`.
  void place(NodeOrder &order);

  const NodeGraphs &tables;
  StageNumbering stages;
  std::vector<uint32_t> graphs;                        ///< By kind and stage.
  std::map<std::pair<uint32_t, uint32_t>, Time> costs; ///< By part and name.
  std::vector<std::vector<Time>> times; ///< By graph and node; made when asked.
  std::map<Key, NodeOrder> orders;
  size_t cached = 0; ///< Places of all orders.
  uint32_t made = 0; ///< Orders, those that are not kept too.
  Key key;
  MicrobatchScales scales;
};

} // namespace ppcc
