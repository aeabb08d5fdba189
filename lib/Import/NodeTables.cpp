// Reads the graphs of nodes of a program from JSON.
#include "NodeTables.h"

#include "JsonReader.h"
#include "ppcc/IR/HeadChecks.h"

using namespace ppcc;

namespace {

class TablesReader : ProgramJson {
public:
  TablesReader(StringRef part, uint32_t file, SourceManager &sources,
               DiagnosticEngine &diags, ArrayRef<KindId> kinds, Head &head)
      : JsonReader(part, file, sources, diags), kinds(kinds), head(head),
        nodes(head.nodes) {}

  void read() {
    size_t errorsBefore = diags.errorCount();
    object("nodes", {wordsField("lanes", nodes.lanes, NodeGraphs::maxLanes),
                     wordsField("names", nodes.names, NodeGraphs::maxNodes),
                     listField("graphs", [&] { graph(); }),
                     listField("uses", [&] { use(); }),
                     listField("patterns", [&] { pattern(); })});
    if (diags.errorCount() == errorsBefore)
      checkNames();
    if (diags.errorCount() == errorsBefore)
      checkPatterns(head, patternPlaces, diags, [&](SourceRange) {
        tooMany(maxPatternPlaces, "places in patterns");
      });
  }

private:
  JsonField wordsField(StringRef what, std::vector<std::string> &words,
                       size_t most) {
    return listField(what, [=, this, &words] {
      auto word = cursor.string();
      if (!word || !isName(*word))
        wrong(what, "a list of words: letters, digits and underscores");
      else if (words.size() == most)
        tooMany(most, what);
      else
        words.push_back(std::move(*word));
    });
  }

  KindId kind() {
    int64_t index = number("kind", 0, int64_t(kinds.size()) - 1);
    KindId id = index < int64_t(kinds.size()) ? kinds[index] : KindId();
    if (!head.kinds[id].isCompute())
      wrong("kind", "a compute action");
    return id;
  }

  /// The integers of a row, of which there are `least` at least.
  SmallVector<int64_t, 8> row(StringRef what, size_t least, StringRef form) {
    SmallVector<int64_t, 8> values;
    bool good = cursor.peek() == '[';
    cursor.array([&] {
      auto value = cursor.integer();
      good &= value.has_value();
      values.push_back(value.value_or(0));
    });
    if (good && values.size() >= least)
      return values;
    wrong(what, form);
    return {};
  }

  bool isKind(int64_t index) const {
    return index >= 0 && index < int64_t(kinds.size()) &&
           head.kinds[kinds[index]].isCompute();
  }
  bool isNameNumber(int64_t index) const {
    return index >= 0 && index < NodeGraphs::maxNodes;
  }

  void graph() {
    NodeGraph graph;
    std::vector<Time> costs;
    auto readCost = [&] {
      const CostNumber &number = rowOf(Cost::Node).number;
      auto text = cursor.scalar();
      auto cost = text ? number.parse(*text) : std::nullopt;
      if (!cost)
        wrong("costs", number.words);
      costs.push_back(cost.value_or(0));
    };
    object("graphs",
           {{"kind", [&] { graph.kind = kind(); }},
            numberField("layers", graph.layers, 0, NodeGraphs::maxNodes),
            flagField("down", graph.down, /*otherwise=*/false),
            listField("nodes", [&] { node(graph); }),
            optional(listField("costs", readCost))});
    if (!costs.empty() && costs.size() != graph.nodes.size())
      return wrong("costs", "a number for each node");
    for (auto [node, cost] : llvm::zip(graph.nodes, costs))
      node.cost = cost;
    for (const GraphNode &node : graph.nodes)
      if (node.layer != GraphNode::noLayer && node.layer >= graph.layers)
        return wrong("layer", fmt::format("below the {} layers of the graph",
                                          graph.layers));
    total += graph.layers + graph.nodes.size();
    if (total > NodeGraphs::maxNodes)
      return tooMany(NodeGraphs::maxNodes, "layers and nodes of graphs");
    nodes.graphs.push_back(std::move(graph));
  }

  void node(NodeGraph &graph) {
    constexpr StringRef form = "lists of kind, name, lane, layer, and the "
                               "earlier nodes that the node needs";
    auto values = row("nodes", 4, form);
    if (values.empty())
      return;
    bool good = isKind(values[0]) && isNameNumber(values[1]) &&
                values[2] >= 0 && values[2] < NodeGraphs::maxLanes &&
                values[3] >= -1 && values[3] < int64_t(NodeGraphs::maxNodes);
    for (int64_t needed : llvm::drop_begin(values, 4))
      good &= needed >= 0 && needed < int64_t(graph.nodes.size());
    if (!good)
      return wrong("nodes", form);
    GraphNode &node = graph.nodes.emplace_back();
    node.part = kinds[values[0]];
    node.name = values[1];
    node.lane = values[2];
    node.layer = values[3] < 0 ? GraphNode::noLayer : uint32_t(values[3]);
    node.needs.assign(values.begin() + 4, values.end());
  }

  void use() {
    GraphUse use;
    object("uses",
           {{"kind", [&] { use.kind = kind(); }},
            numberField("pipe", use.pipe, 0, int64_t(head.pipes.size()) - 1),
            listField("graphs", [&] {
              int64_t graph =
                  number("graphs", -1, int64_t(nodes.graphs.size()) - 1);
              use.graphs.push_back(graph < 0 ? GraphUse::none
                                             : uint32_t(graph));
            })});
    if (head.pipes.empty())
      return wrong("uses", "empty: there is no pipe");
    uint32_t stages = head.pipes[use.pipe.value].numStages();
    if (use.graphs.size() != 1 && use.graphs.size() != stages)
      return wrong("graphs",
                   fmt::format("one graph, or {}, one a stage", stages));
    for (uint32_t graph : use.graphs)
      if (graph != GraphUse::none && nodes.graphs[graph].kind != use.kind)
        return wrong("graphs", "graphs of the same kind");
    for (const GraphUse &other : nodes.uses)
      if (other.kind == use.kind && other.pipe == use.pipe)
        return wrong("uses", "one for each kind and pipe");
    nodes.uses.push_back(std::move(use));
  }

  void pattern() {
    NodePattern pattern;
    object("patterns",
           {listField("kinds", [&] { pattern.kinds.push_back(kind()); }),
            {"before", [&] { places(pattern.before); }},
            {"layer", [&] { places(pattern.layer); }},
            {"after", [&] { places(pattern.after); }}});
    patternPlaces.push_back(lastPlace());
    nodes.patterns.push_back(std::move(pattern));
  }

  void places(std::vector<PatternNode> &places) {
    list("a pattern", [&] {
      constexpr StringRef form = "lists of kind, name, and 1 for `last`, or 0";
      auto values = row("a pattern", 3, form);
      if (values.empty())
        return;
      if (!isKind(values[0]) || !isNameNumber(values[1]))
        return wrong("a pattern", form);
      places.push_back({kinds[values[0]], uint32_t(values[1]), values[2] != 0});
    });
  }

  /// Names and lanes may stand behind what uses them.
  void checkNames() {
    auto checkName = [&](uint32_t name, uint32_t lane) {
      if (name >= nodes.names.size())
        wrong("nodes", fmt::format("made of the {} names", nodes.names.size()));
      else if (lane != 0 && lane >= nodes.lanes.size())
        wrong("nodes", fmt::format("made of the {} lanes", nodes.lanes.size()));
    };
    for (const NodeGraph &graph : nodes.graphs)
      for (const GraphNode &node : graph.nodes)
        checkName(node.name,
                  std::max(node.lane, uint32_t(nodes.lanes.empty())));
    for (const NodePattern &pattern : nodes.patterns)
      for (const auto *places :
           {&pattern.before, &pattern.layer, &pattern.after})
        for (const PatternNode &place : *places)
          checkName(place.name, 0);
  }

  ArrayRef<KindId> kinds;
  Head &head;
  NodeGraphs &nodes;
  std::vector<SourceRange> patternPlaces;
  uint64_t total = 0; ///< Layers and nodes of all graphs.
};

} // namespace

void ppcc::readNodes(StringRef text, uint32_t file, SourceManager &sources,
                     DiagnosticEngine &diags, ArrayRef<KindId> kinds,
                     Head &head) {
  TablesReader(text, file, sources, diags, kinds, head).read();
}
