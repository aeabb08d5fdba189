// Reads the graphs of nodes of a program from text.
#include "TextSection.h"
#include "ppcc/Basic/Diagnostics/IR.h"
#include "ppcc/Basic/Diagnostics/Verify.h"

using namespace ppcc;

namespace {

class TextNodes : public TextSection {
public:
  explicit TextNodes(HeadText &in) : TextSection(in), nodes(in.head.nodes) {
    keys = {{"graph", [this] { graph(); }},
            {"graphs", [this] { use(); }},
            {"pattern", [this] { pattern(); }}};
  }

  /// Checks the patterns, which may stand before the graphs that they order.
  void check() override {
    checkPatterns(head, patternRanges, diags, [&](SourceRange at) {
      diags.report<diag::IrTooMany>(at, maxPatternPlaces, "places in patterns");
    });
  }

private:
  /// `graph F layers 1 [compute:F.L0.attn comm:F.L0.combine<0]`
  void graph() {
    SourceRange at;
    NodeGraph graph;
    graph.kind = takeComputeKind(at);
    expectWord("layers");
    graph.layers = number("the layers of a graph", NodeGraphs::maxNodes);
    graph.down = acceptWord("down");
    list([&] { node(graph); });
    if (!going)
      return;
    numNodes += graph.nodes.size() + graph.layers;
    if (numNodes > NodeGraphs::maxNodes)
      return refuse<diag::IrTooMany>(text.keyRange(), NodeGraphs::maxNodes,
                                     "layers and nodes of graphs");
    nodes.graphs.push_back(std::move(graph));
  }

  /// `comm:F.L0.combine=0.5<2,3`
  void node(NodeGraph &graph) {
    GraphNode node;
    SourceRange at = text.here();
    StringRef lane = name("the name of a lane");
    if (!going)
      return;
    node.lane = laneNumber(lane);
    if (node.lane >= NodeGraphs::maxLanes)
      return refuse<diag::IrTooMany>(at, NodeGraphs::maxLanes, "lanes");
    expect(":");
    nodeName(node.part, node.name, &node.layer);
    if (node.layer != GraphNode::noLayer && node.layer >= graph.layers)
      refuse<diag::IrNoEntry>(at, "layer", node.layer);
    if (accept("=")) {
      const CostNumber &cost = rowOf(Cost::Node).number;
      StringRef word = text.peekWord();
      auto value = cost.parse(word);
      if (!value)
        return expected(cost.words);
      text.take(word);
      node.cost = *value;
    }
    for (bool more = accept("<"); more; more = accept(",")) {
      uint32_t needed = number("a node", NodeGraphs::maxNodes);
      if (needed >= graph.nodes.size())
        refuse<diag::IrNodeNeeds>(at, graph.nodes.size(), needed);
      node.needs.push_back(needed);
    }
    if (going)
      graph.nodes.push_back(std::move(node));
  }

  /// `F.mlp`, or `F.L2.mlp` where nodes have layers.
  void nodeName(KindId &part, uint32_t &name, uint32_t *layer) {
    if (!going)
      return;
    SourceRange at;
    auto [letters, path] = text.takeWord(at).split('.');
    part = computeKind(letters, at, ", and the name of a node");
    auto [first, tail] = path.split('.');
    if (layer && !tail.empty() &&
        (!first.consume_front("L") || first.getAsInteger(10, *layer)))
      expected(at, "a layer, as in `F.L0.mlp`");
    StringRef last = tail.empty() ? path : tail;
    if (!isName(last))
      expected(at, "the name of a node, as in `F.mlp`");
    if (going)
      name = nameNumber(last);
  }

  /// `graphs F "main" [0 0 1 -]`
  void use() {
    SourceRange at;
    GraphUse use;
    use.kind = takeComputeKind(at);
    use.pipe = pipeName();
    list([&] { use.graphs.push_back(graphOfStage(use.kind)); });
    if (going)
      checkUse(use);
    if (going)
      nodes.uses.push_back(std::move(use));
  }

  /// The number of a graph, or `-`.
  uint32_t graphOfStage(KindId kind) {
    if (text.accept("-"))
      return GraphUse::none;
    SourceRange at = text.here();
    uint32_t graph = number("a graph", NodeGraphs::maxNodes);
    if (graph >= nodes.graphs.size() || nodes.graphs[graph].kind != kind)
      refuse<diag::IrNoEntry>(
          at, fmt::format("graph of `{}`", head.kinds[kind].letters), graph);
    return graph;
  }

  void checkUse(const GraphUse &use) {
    const Pipe &pipe = head.pipes[use.pipe.value];
    if (use.graphs.size() != 1 && use.graphs.size() != pipe.numStages())
      return refuse<diag::IrGraphCount>(text.keyRange(), use.graphs.size(),
                                        pipe.numStages(), pipe.name);
    for (const GraphUse &other : nodes.uses)
      if (other.kind == use.kind && other.pipe == use.pipe)
        report<diag::IrTwice>(text.keyRange(),
                              fmt::format("`graphs {}` of pipe `{}`",
                                          head.kinds[use.kind].letters,
                                          pipe.name));
  }

  /// `pattern F B before [F.embed] layer [F.attn B.mlp] after [last:F.mlp]`
  void pattern() {
    NodePattern pattern;
    while (going && !text.acceptWord("before")) {
      SourceRange at;
      KindId kind = takeComputeKind(at);
      if (llvm::is_contained(pattern.kinds, kind))
        report<diag::IrTwice>(at,
                              fmt::format("`{}`", head.kinds[kind].letters));
      pattern.kinds.push_back(kind);
    }
    places(pattern.before);
    expectWord("layer");
    places(pattern.layer);
    expectWord("after");
    places(pattern.after);
    if (!going)
      return;
    nodes.patterns.push_back(std::move(pattern));
    patternRanges.push_back(text.keyRange());
  }

  void places(std::vector<PatternNode> &places) {
    list([&] {
      PatternNode &place = places.emplace_back();
      place.last = text.accept("last:");
      nodeName(place.part, place.name, nullptr);
    });
  }

  NodeGraphs &nodes;
  Numbering laneNumber{nodes.lanes}, nameNumber{nodes.names};
  uint64_t numNodes = 0; ///< Of all graphs, and layers.
  std::vector<SourceRange> patternRanges;
};

} // namespace

std::unique_ptr<TextSection> ppcc::textNodes(HeadText &in) {
  return std::make_unique<TextNodes>(in);
}
