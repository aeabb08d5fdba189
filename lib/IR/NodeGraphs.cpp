// Finds nodes and patterns, and what is wrong with them.
#include "ppcc/IR/NodeGraphs.h"

using namespace ppcc;

const NodePattern *NodeGraphs::patternFor(ArrayRef<KindId> kinds) const {
  for (const NodePattern &pattern : patterns) {
    auto fits = [&](KindId kind) {
      return llvm::is_contained(pattern.kinds, kind) &&
             llvm::count(kinds, kind) == 1;
    };
    if (kinds.size() <= pattern.kinds.size() && llvm::all_of(kinds, fits))
      return &pattern;
  }
  return nullptr;
}

bool NodeGraphs::hasCosts() const {
  return llvm::any_of(graphs,
                      [](const NodeGraph &graph) { return graph.hasCosts(); });
}

bool NodeGraph::hasCosts() const {
  return llvm::any_of(nodes, [](const GraphNode &node) {
    return node.cost != GraphNode::unset;
  });
}

std::string NodeGraphs::pathOf(const GraphNode &node) const {
  const std::string &name = names[node.name];
  return node.layer == GraphNode::noLayer
             ? name
             : fmt::format("L{}.{}", node.layer, name);
}

NodeIndex::NodeIndex(const NodeGraph &graph) : nodes(&graph) {
  byName.reserve(graph.nodes.size());
  for (auto [i, node] : llvm::enumerate(graph.nodes))
    byName.try_emplace({node.part.value, {node.name, node.layer}}, uint32_t(i));
}

std::optional<uint32_t> NodeIndex::find(KindId part, uint32_t name,
                                        uint32_t layer) const {
  auto found = byName.find({part.value, {name, layer}});
  return found == byName.end() ? std::nullopt : std::optional(found->second);
}

std::optional<PatternError> ppcc::findPatternError(const NodePattern &pattern,
                                                   const NodeGraph &graph) {
  constexpr uint32_t nowhere = UINT32_MAX;
  NodeIndex index(graph);
  std::vector<uint32_t> position(graph.nodes.size(), nowhere), order;
  std::vector<const PatternNode *> places;
  const NodeIndex *member = &index;
  std::optional<PatternError> twice;
  forEachPatternNode(pattern, member,
                     [&](size_t, uint32_t node, const PatternNode &place) {
                       if (position[node] != nowhere && !twice)
                         twice = PatternError{node, {}, &place};
                       position[node] = uint32_t(order.size());
                       order.push_back(node);
                       places.push_back(&place);
                     });
  if (twice)
    return twice;
  if (auto left = llvm::find(position, nowhere); left != position.end())
    return PatternError{uint32_t(left - position.begin()), {}};
  for (auto [node, place] : llvm::zip(order, places))
    for (uint32_t needed : graph.nodes[node].needs)
      if (position[needed] > position[node])
        return PatternError{node, needed, place};
  return std::nullopt;
}
