// Reads the graphs of nodes of a program from JSON.
#pragma once

#include "JsonReader.h"
#include "ppcc/IR/HeadChecks.h"

namespace ppcc {

/// Reads the key `nodes` of docs/program-format.md, when pipes have been read.
class JsonNodes {
public:
  /// `kinds` are those of the file, by its numbers.
  JsonNodes(JsonReader &json, ArrayRef<KindId> kinds, Head &head)
      : json(json), kinds(kinds), head(head), nodes(head.nodes) {}

  void read() {
    json.object("nodes",
                {wordsField("lanes", nodes.lanes, NodeGraphs::maxLanes),
                 wordsField("names", nodes.names, NodeGraphs::maxNodes),
                 json.listField("graphs", [&] { graph(); }),
                 json.listField("uses", [&] { use(); }),
                 json.listField("patterns", [&] { pattern(); })});
    if (json.isGood())
      checkPatterns(head, patternPlaces, json.diags, [&](SourceRange) {
        json.tooMany(maxPatternPositions, "places in patterns");
      });
  }

private:
  JsonField wordsField(StringRef what, std::vector<std::string> &words,
                       size_t maxWords) {
    return json.listField(what, [=, this, &words] {
      auto word = json.string();
      if (!word || !isIdentifier(*word))
        json.wrong(what, "a list of words: letters, digits and underscores");
      else if (words.size() == maxWords)
        json.tooMany(maxWords, what);
      else
        words.push_back(std::move(*word));
    });
  }

  KindId kind() {
    int64_t index = json.number("kind", 0, int64_t(kinds.size()) - 1);
    KindId id = index < int64_t(kinds.size()) ? kinds[index] : KindId();
    if (!head.kinds[id].isCompute())
      json.wrong("kind", "a compute action");
    return id;
  }

  /// The integers of a row, of which there are so many at least.
  std::vector<int64_t> row(StringRef what, size_t minNumbers, StringRef form) {
    if (auto values = json.integers(); values && values->size() >= minNumbers)
      return std::move(*values);
    json.wrong(what, form);
    return {};
  }

  bool isKind(int64_t index) const {
    return index >= 0 && index < int64_t(kinds.size()) &&
           head.kinds[kinds[index]].isCompute();
  }
  bool isNameNumber(int64_t index) const {
    return index >= 0 && index < NodeGraphs::maxNodes;
  }

  /// Whether a table of words has this one; else a report.
  bool isIn(const std::vector<std::string> &words, StringRef what,
            size_t number) {
    if (number >= words.size())
      json.wrong("nodes", fmt::format("made of the {} {}", words.size(), what));
    return number < words.size();
  }

  void graph() {
    NodeGraph graph;
    std::vector<Time> costs;
    auto readCost = [&] {
      const CostNumber &number = rowOf(Cost::Node).number;
      auto text = json.scalar();
      auto cost = text ? number.parse(*text) : std::nullopt;
      if (!cost)
        json.wrong("costs", number.description);
      costs.push_back(cost.value_or(0));
    };
    json.object(
        "graphs",
        {{"kind", [&] { graph.kind = kind(); }},
         json.numberField("layers", graph.layers, 0, NodeGraphs::maxNodes),
         {"down", [&] { graph.down = json.boolean("down", false); }},
         json.listField("nodes", [&] { node(graph); }),
         optional(json.listField("costs", readCost))});
    if (!costs.empty() && costs.size() != graph.nodes.size())
      return json.wrong("costs", "a number for each node");
    for (auto [node, cost] : llvm::zip(graph.nodes, costs))
      node.cost = cost;
    for (const GraphNode &node : graph.nodes)
      if (node.layer != GraphNode::noLayer && node.layer >= graph.layers)
        return json.wrong(
            "layer",
            fmt::format("below the {} layers of the graph", graph.layers));
    total += graph.layers + graph.nodes.size();
    if (total > NodeGraphs::maxNodes)
      return json.tooMany(NodeGraphs::maxNodes, "layers and nodes of graphs");
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
      return json.wrong("nodes", form);
    if (!isIn(nodes.names, "names", values[1]) ||
        !isIn(nodes.lanes, "lanes", values[2]))
      return;
    GraphNode &node = graph.nodes.emplace_back();
    node.part = kinds[values[0]];
    node.name = values[1];
    node.lane = values[2];
    node.layer = values[3] < 0 ? GraphNode::noLayer : uint32_t(values[3]);
    node.needs.assign(values.begin() + 4, values.end());
  }

  void use() {
    GraphUse use;
    json.object(
        "uses",
        {{"kind", [&] { use.kind = kind(); }},
         json.numberField("pipe", use.pipe, 0, int64_t(head.pipes.size()) - 1),
         json.listField("graphs", [&] {
           int64_t graph =
               json.number("graphs", -1, int64_t(nodes.graphs.size()) - 1);
           use.graphs.push_back(graph < 0 ? GraphUse::none : uint32_t(graph));
         })});
    if (head.pipes.empty())
      return json.wrong("uses", "empty: the program has no pipe");
    uint32_t stages = head.pipes[use.pipe.value].numStages();
    if (use.graphs.size() != 1 && use.graphs.size() != stages)
      return json.wrong("graphs",
                        fmt::format("one graph, or {}, one per stage", stages));
    for (uint32_t graph : use.graphs)
      if (graph != GraphUse::none && nodes.graphs[graph].kind != use.kind)
        return json.wrong("graphs", "graphs of the same kind");
    for (const GraphUse &other : nodes.uses)
      if (other.kind == use.kind && other.pipe == use.pipe)
        return json.wrong("uses", "one for each kind and pipe");
    nodes.uses.push_back(std::move(use));
  }

  void pattern() {
    NodePattern pattern;
    json.object(
        "patterns",
        {json.listField("kinds", [&] { pattern.kinds.push_back(kind()); }),
         {"before", [&] { places(pattern.before); }},
         {"layer", [&] { places(pattern.layer); }},
         {"after", [&] { places(pattern.after); }}});
    patternPlaces.push_back(json.lastPlace());
    nodes.patterns.push_back(std::move(pattern));
  }

  void places(std::vector<PatternNode> &places) {
    json.list("a pattern", [&] {
      constexpr StringRef form = "lists of kind, name, and 1 for `last`, or 0";
      auto values = row("a pattern", 3, form);
      if (values.empty())
        return;
      if (!isKind(values[0]) || !isNameNumber(values[1]))
        return json.wrong("a pattern", form);
      if (isIn(nodes.names, "names", values[1]))
        places.push_back(
            {kinds[values[0]], uint32_t(values[1]), values[2] != 0});
    });
  }

  JsonReader &json;
  ArrayRef<KindId> kinds;
  Head &head;
  NodeGraphs &nodes;
  std::vector<SourceRange> patternPlaces;
  uint64_t total = 0; ///< Layers and nodes of all graphs.
};

} // namespace ppcc
