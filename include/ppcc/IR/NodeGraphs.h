// What the actions of a stage are made of: graphs of nodes that run on lanes,
// and the orders in which the nodes of overlapped actions take turns.
#pragma once

#include "ppcc/Support/Id.h"
#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// A node of an action: a piece of its work that occupies one lane.
struct GraphNode {
  static constexpr uint32_t noLayer = UINT32_MAX;
  static constexpr int64_t unset = -1;

  KindId part;       ///< The letters before its name: W for the W.mlp of a B.
  uint32_t name = 0; ///< Index into NodeGraphs::names.
  uint32_t lane = 0; ///< Index into NodeGraphs::lanes.
  uint32_t layer = noLayer;    ///< Of its stage, from 0.
  std::vector<uint32_t> needs; ///< Nodes of the same graph that end before it
                               ///< starts; each stands before it.
  int64_t cost = unset;        ///< A Time; costs by name stand above it.
};

/// The names of the nodes at which an action meets other stages: at `recv` what
/// it reads from them must be there, at `send` they get what it made. Without
/// them that is its begin and its end.
namespace hook {
inline constexpr llvm::StringLiteral recv = "recv", send = "send";
} // namespace hook

/// What an action of a kind does on a stage. Stages that do the same share one.
struct NodeGraph {
  KindId kind;
  uint32_t layers = 0; ///< Those that it runs through.
  bool down = false;   ///< From the last to the first of them.
  std::vector<GraphNode> nodes;

  /// Whether its nodes say what they take.
  bool hasCosts() const;
  /// The layer that it comes to as its n-th, from 0.
  uint32_t layerAt(uint32_t n) const { return down ? layers - 1 - n : n; }
};

/// The graphs of a kind by stage of a pipe: one a stage, or one for all.
struct GraphUse {
  static constexpr uint32_t none = UINT32_MAX;

  KindId kind;
  PipeId pipe;
  std::vector<uint32_t> graphs; ///< Indices into NodeGraphs::graphs, or `none`.
};

/// A node in a pattern.
struct PatternNode {
  KindId part;
  uint32_t name = 0; ///< Index into NodeGraphs::names.
  bool last = false; ///< The node of the last layer that its action comes to.
};

/// The order in which the nodes of actions that overlap, or of one of them by
/// itself, are launched. What an action does not have is passed over.
struct NodePattern {
  std::vector<KindId> kinds;       ///< Of the actions, each once.
  std::vector<PatternNode> before; ///< Nodes that are in no layer.
  /// Of the n-th layer of every action, then of the next, until all actions are
  /// through; those that `after` calls `last` wait until then.
  std::vector<PatternNode> layer;
  std::vector<PatternNode> after; ///< Nodes in no layer, and `last` ones.
};

/// The tables of a program. Without any, its actions have no inside.
struct NodeGraphs {
  static constexpr uint32_t maxNodes = 1u << 20; ///< Of all graphs, and layers.
  static constexpr uint32_t maxLanes = 0xFF;

  std::vector<std::string> lanes, names;
  std::vector<NodeGraph> graphs;
  std::vector<GraphUse> uses;        ///< Each kind and pipe at most once.
  std::vector<NodePattern> patterns; ///< The first that fits is used.

  bool empty() const { return graphs.empty(); }
  /// Whether nodes say what they take.
  bool hasCosts() const;
  /// The first pattern that has all `kinds`, each at most once among them; null
  /// without one.
  const NodePattern *patternFor(ArrayRef<KindId> kinds) const;
  /// `L0.mlp`, or `loss`.
  std::string pathOf(const GraphNode &node) const;
  /// Whether a node is the hook of this name of its action.
  bool isHook(const NodeGraph &graph, const GraphNode &node,
              StringRef hook) const {
    return node.layer == GraphNode::noLayer && node.part == graph.kind &&
           names[node.name] == hook;
  }
};

/// Finds the nodes of one graph by their names.
class NodeIndex {
public:
  explicit NodeIndex(const NodeGraph &graph);

  const NodeGraph &graph() const { return *nodes; }
  /// The node called so in a layer, or in none.
  std::optional<uint32_t> find(KindId part, uint32_t name,
                               uint32_t layer) const;

private:
  const NodeGraph *nodes;
  using Key = std::pair<uint32_t, std::pair<uint32_t, uint32_t>>;
  DenseMap<Key, uint32_t> byName;
};

/// Calls `visit(member, node, patternNode)` for each node of the members in the
/// order of the pattern. O(layers * nodes of the pattern).
template <class Visit>
void forEachPatternNode(const NodePattern &pattern,
                        ArrayRef<const NodeIndex *> members, Visit visit) {
  auto place = [&](const PatternNode &node, size_t member, uint32_t layer) {
    if (auto found = members[member]->find(node.part, node.name, layer))
      visit(member, *found, node);
  };
  DenseSet<std::pair<uint32_t, uint32_t>> last;
  for (const PatternNode &node : pattern.after)
    if (node.last)
      last.insert({node.part.value, node.name});
  std::vector<bool> delayed;
  for (const PatternNode &node : pattern.layer)
    delayed.push_back(last.contains({node.part.value, node.name}));
  uint32_t numRounds = 0;
  for (const NodeIndex *member : members)
    numRounds = std::max(numRounds, member->graph().layers);

  for (const PatternNode &node : pattern.before)
    for (size_t i = 0; i != members.size(); ++i)
      place(node, i, GraphNode::noLayer);
  for (uint32_t round = 0; round != numRounds; ++round)
    for (size_t n = 0; n != pattern.layer.size(); ++n)
      for (size_t i = 0; i != members.size(); ++i) {
        const NodeGraph &graph = members[i]->graph();
        if (round < graph.layers && !(delayed[n] && round + 1 == graph.layers))
          place(pattern.layer[n], i, graph.layerAt(round));
      }
  for (const PatternNode &node : pattern.after)
    for (size_t i = 0; i != members.size(); ++i) {
      const NodeGraph &graph = members[i]->graph();
      if (!node.last)
        place(node, i, GraphNode::noLayer);
      else if (graph.layers != 0)
        place(node, i, graph.layerAt(graph.layers - 1));
    }
}

/// What is wrong with a pattern for an action: it leaves a node out, has two
/// places for it, or has it before one that the node needs.
struct PatternError {
  uint32_t node;
  std::optional<uint32_t> needed;
  const PatternNode *place = nullptr; ///< Of the node, unless it is left out.

  /// `has no place for`, ...
  StringRef words() const {
    return needed  ? "is too early for"
           : place ? "has two places for"
                   : "does not place";
  }
};

/// What forEachPatternNode() looks at for one graph.
inline uint64_t patternPositions(const NodePattern &pattern,
                                 const NodeGraph &graph) {
  return (pattern.layer.size() + 1) * uint64_t(graph.layers) +
         pattern.before.size() + pattern.after.size();
}

/// The first fault of the pattern for actions with this graph. The order of one
/// action's nodes does not depend on the actions beside it. O(layers * nodes of
/// the pattern).
std::optional<PatternError> findPatternError(const NodePattern &pattern,
                                             const NodeGraph &graph);

} // namespace ppcc
