// Reads the graphs of nodes of a program from text.
#include "TextNodes.h"

#include "ppcc/IR/HeadChecks.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;
using llvm::StringRef;

bool TextNodes::graph() {
  SourceRange at;
  NodeGraph graph;
  auto kind = takeComputeKind(at);
  if (!kind || !text.expectWord("layers"))
    return false;
  graph.kind = *kind;
  auto layers = text.number("the layers of a graph", NodeGraphs::maxNodes);
  if (!layers)
    return false;
  graph.layers = *layers;
  graph.down = text.acceptWord("down");
  if (!text.expect("["))
    return false;
  while (!text.accept("]"))
    if (!node(graph))
      return false;
  numNodes += graph.nodes.size() + graph.layers;
  if (numNodes > NodeGraphs::maxNodes) {
    diags.report<diag::IrTooMany>(text.keyRange(), NodeGraphs::maxNodes,
                                  "layers and nodes of graphs");
    return false;
  }
  nodes.graphs.push_back(std::move(graph));
  return true;
}

/// The number of a word in a table, where it is added when it is new.
static uint32_t numberOf(StringRef word, std::vector<std::string> &table,
                         llvm::StringMap<uint32_t> &numbers) {
  auto [found, isNew] =
      numbers.try_emplace(word, static_cast<uint32_t>(table.size()));
  if (isNew)
    table.push_back(word.str());
  return found->second;
}

/// `comm:F.L0.combine<2,3`
bool TextNodes::node(NodeGraph &graph) {
  GraphNode node;
  SourceRange at = text.here();
  auto lane = takeName("the name of a lane");
  if (!lane)
    return false;
  node.lane = numberOf(*lane, nodes.lanes, laneNumbers);
  if (node.lane >= NodeGraphs::maxLanes) {
    diags.report<diag::IrTooMany>(at, NodeGraphs::maxLanes, "lanes");
    return false;
  }
  if (!text.expect(":") || !nodeName(node.part, node.name, &node.layer))
    return false;
  if (node.layer != GraphNode::noLayer && node.layer >= graph.layers) {
    diags.report<diag::IrNoEntry>(at, "layer", node.layer);
    return false;
  }
  if (!needs(node, graph, at))
    return false;
  graph.nodes.push_back(std::move(node));
  return true;
}

/// `F.mlp`, or `F.L2.mlp` where nodes have layers.
bool TextNodes::nodeName(KindId &part, uint32_t &name, uint32_t *layer) {
  SourceRange at;
  auto [letters, path] = text.takeWord(at).split('.');
  auto kind = computeKind(letters, at, ", and the name of a node");
  if (!kind)
    return false;
  part = *kind;
  auto [head, tail] = path.split('.');
  if (layer && !tail.empty() &&
      (!head.consume_front("L") || head.getAsInteger(10, *layer))) {
    diags.report<diag::IrExpected>(at, "a layer, as in `F.L0.mlp`");
    return false;
  }
  StringRef last = tail.empty() ? path : tail;
  if (!isName(last)) {
    diags.report<diag::IrExpected>(at, "the name of a node, as in `F.mlp`");
    return false;
  }
  name = numberOf(last, nodes.names, nameNumbers);
  return true;
}

/// `<2,3`, or nothing.
bool TextNodes::needs(GraphNode &node, const NodeGraph &graph, SourceRange at) {
  for (bool more = text.accept("<"); more; more = text.accept(",")) {
    auto needed = text.number("a node", NodeGraphs::maxNodes);
    if (!needed)
      return false;
    if (*needed >= graph.nodes.size()) {
      diags.report<diag::IrNodeNeeds>(at, graph.nodes.size(), *needed);
      return false;
    }
    node.needs.push_back(*needed);
  }
  return true;
}

bool TextNodes::use() {
  SourceRange at;
  auto kind = takeComputeKind(at);
  auto pipe = kind ? pipeName() : std::nullopt;
  if (!pipe || !text.expect("["))
    return false;
  GraphUse use{*kind, *pipe, {}};
  while (!text.accept("]"))
    if (!graphOfStage(use))
      return false;
  if (!checkUse(use))
    return false;
  nodes.uses.push_back(std::move(use));
  return true;
}

/// The number of a graph, or `-`.
bool TextNodes::graphOfStage(GraphUse &use) {
  if (text.accept("-")) {
    use.graphs.push_back(GraphUse::none);
    return true;
  }
  SourceRange at = text.here();
  auto graph = text.number("a graph", NodeGraphs::maxNodes);
  if (!graph)
    return false;
  if (*graph >= nodes.graphs.size() || nodes.graphs[*graph].kind != use.kind) {
    diags.report<diag::IrNoEntry>(
        at, fmt::format("graph of `{}`", program.kinds[use.kind].letters),
        *graph);
    return false;
  }
  use.graphs.push_back(*graph);
  return true;
}

bool TextNodes::checkUse(const GraphUse &use) {
  const Pipe &pipe = program.pipes[use.pipe.value];
  if (use.graphs.size() != 1 && use.graphs.size() != pipe.numStages()) {
    diags.report<diag::IrGraphCount>(text.keyRange(), use.graphs.size(),
                                     pipe.numStages(), pipe.name);
    return false;
  }
  for (const GraphUse &other : nodes.uses)
    if (other.kind == use.kind && other.pipe == use.pipe)
      diags.report<diag::IrTwice>(text.keyRange(),
                                  fmt::format("`graphs {}` of pipe `{}`",
                                              program.kinds[use.kind].letters,
                                              pipe.name));
  return true;
}

bool TextNodes::pattern() {
  NodePattern pattern;
  while (!text.acceptWord("before")) {
    SourceRange at;
    auto kind = takeComputeKind(at);
    if (!kind)
      return false;
    if (llvm::is_contained(pattern.kinds, *kind))
      diags.report<diag::IrTwice>(
          at, fmt::format("`{}`", program.kinds[*kind].letters));
    pattern.kinds.push_back(*kind);
  }
  if (!places(pattern.before) || !text.expectWord("layer") ||
      !places(pattern.layer) || !text.expectWord("after") ||
      !places(pattern.after))
    return false;
  nodes.patterns.push_back(std::move(pattern));
  patternRanges.push_back(text.keyRange());
  return true;
}

bool TextNodes::places(std::vector<PatternNode> &places) {
  if (!text.expect("["))
    return false;
  while (!text.accept("]")) {
    PatternNode place;
    place.last = text.accept("last:");
    if (!nodeName(place.part, place.name, nullptr))
      return false;
    places.push_back(place);
  }
  return true;
}

void TextNodes::check() {
  checkPatterns(program, patternRanges, diags, [&](SourceRange at) {
    diags.report<diag::IrTooMany>(at, maxPatternPlaces, "places in patterns");
  });
}
