// Reads the graphs of nodes of a program from text.
#pragma once

#include "TextReader.h"
#include "ppcc/Basic/Diagnostics/Verify.h"

namespace ppcc {

class TextNodes : TextHead {
public:
  explicit TextNodes(const TextHead &head)
      : TextHead(head), nodes(head.head.nodes) {}

  /// Checks the patterns, which may stand before the graphs that they order.
  void check() {
    checkPatterns(head, patternRanges, in.diags, [&](SourceRange at) {
      in.diags.report<diag::IrTooMany>(at, maxPatternPositions,
                                       "places in patterns");
    });
  }

  /// `graph F layers 1 [compute:F.L0.attn comm:F.L0.combine<0]`
  void graph() {
    SourceRange at;
    NodeGraph graph;
    graph.kind = takeComputeKind(at);
    in.expectWord("layers");
    graph.layers = in.number("the layers of a graph", NodeGraphs::maxNodes);
    graph.down = in.acceptWord("down");
    in.list([&] { node(graph); });
    if (!in.ok())
      return;
    numNodes += graph.nodes.size() + graph.layers;
    if (numNodes > NodeGraphs::maxNodes)
      return in.refuse<diag::IrTooMany>(in.keyRange(), NodeGraphs::maxNodes,
                                        "layers and nodes of graphs");
    nodes.graphs.push_back(std::move(graph));
  }

  /// `graphs F "main" [0 0 1 -]`
  void use() {
    SourceRange at;
    GraphUse use;
    use.kind = takeComputeKind(at);
    use.pipe = pipeName();
    in.list([&] { use.graphs.push_back(graphOfStage(use.kind)); });
    if (in.ok())
      checkUse(use);
    if (in.ok())
      nodes.uses.push_back(std::move(use));
  }

  /// `pattern F B before [F.embed] layer [F.attn B.mlp] after [last:F.mlp]`
  void pattern() {
    NodePattern pattern;
    while (in.ok() && !in.acceptWord("before")) {
      SourceRange at;
      KindId kind = takeComputeKind(at);
      if (llvm::is_contained(pattern.kinds, kind))
        in.report<diag::IrDuplicate>(
            at, fmt::format("`{}`", head.kinds[kind].mnemonic));
      pattern.kinds.push_back(kind);
    }
    places(pattern.before);
    in.expectWord("layer");
    places(pattern.layer);
    in.expectWord("after");
    places(pattern.after);
    if (!in.ok())
      return;
    nodes.patterns.push_back(std::move(pattern));
    patternRanges.push_back(in.keyRange());
  }

private:
  /// `comm:F.L0.combine=0.5<2,3`
  void node(NodeGraph &graph) {
    GraphNode node;
    SourceRange at = in.here();
    StringRef lane = in.name("the name of a lane");
    if (!in.ok())
      return;
    node.lane = laneNumber(lane);
    if (node.lane >= NodeGraphs::maxLanes)
      return in.refuse<diag::IrTooMany>(at, NodeGraphs::maxLanes, "lanes");
    in.expect(":");
    nodeName(node.part, node.name, &node.layer);
    if (node.layer != GraphNode::noLayer && node.layer >= graph.layers)
      in.refuse<diag::IrUndefined>(at, "layer", node.layer);
    if (in.accept("=")) {
      node.cost = in.cost(rowOf(Cost::Node).number);
    }
    for (bool more = in.accept("<"); more; more = in.accept(",")) {
      uint32_t needed = in.number("a node", NodeGraphs::maxNodes);
      if (needed >= graph.nodes.size())
        in.refuse<diag::IrNodeNeeds>(at, graph.nodes.size(), needed);
      node.needs.push_back(needed);
    }
    if (in.ok())
      graph.nodes.push_back(std::move(node));
  }

  /// `F.mlp`, or `F.L2.mlp` where nodes have layers.
  void nodeName(KindId &part, uint32_t &name, uint32_t *layer) {
    if (!in.ok())
      return;
    SourceRange at;
    auto [mnemonic, path] = in.takeWord(at).split('.');
    part = computeKind(mnemonic, at, ", and the name of a node");
    auto [first, tail] = path.split('.');
    if (layer && !tail.empty() &&
        (!first.consume_front("L") || first.getAsInteger(10, *layer)))
      in.expected(at, "a layer, as in `F.L0.mlp`");
    StringRef last = tail.empty() ? path : tail;
    if (!isIdentifier(last))
      in.expected(at, "the name of a node, as in `F.mlp`");
    if (in.ok())
      name = nameNumber(last);
  }

  /// The number of a graph, or `-`.
  uint32_t graphOfStage(KindId kind) {
    if (in.accept("-"))
      return GraphUse::none;
    SourceRange at = in.here();
    uint32_t graph = in.number("a graph", NodeGraphs::maxNodes);
    if (graph >= nodes.graphs.size() || nodes.graphs[graph].kind != kind)
      in.refuse<diag::IrUndefined>(
          at, fmt::format("graph of `{}`", head.kinds[kind].mnemonic), graph);
    return graph;
  }

  void checkUse(const GraphUse &use) {
    const Pipe &pipe = head.pipes[use.pipe.value];
    if (use.graphs.size() != 1 && use.graphs.size() != pipe.numStages())
      return in.refuse<diag::IrGraphCount>(in.keyRange(), use.graphs.size(),
                                           pipe.numStages(), pipe.name);
    for (const GraphUse &other : nodes.uses)
      if (other.kind == use.kind && other.pipe == use.pipe)
        in.report<diag::IrDuplicate>(in.keyRange(),
                                     fmt::format("`graphs {}` of pipe `{}`",
                                                 head.kinds[use.kind].mnemonic,
                                                 pipe.name));
  }

  void places(std::vector<PatternNode> &places) {
    in.list([&] {
      PatternNode &place = places.emplace_back();
      place.last = in.accept("last:");
      nodeName(place.part, place.name, nullptr);
    });
  }

  NodeGraphs &nodes;
  StringInterner laneNumber{nodes.lanes}, nameNumber{nodes.names};
  uint64_t numNodes = 0; ///< Of all graphs, and layers.
  std::vector<SourceRange> patternRanges;
};

} // namespace ppcc
