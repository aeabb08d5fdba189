// Makes the graphs of stages from those of layers.
#include "Layers.h"
#include "ppcc/IR/HeadChecks.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

/// The chains of one action in one layer as a graph.
struct LayerGraph {
  struct Node {
    KindId part;
    uint32_t name = 0, lane = 0;
    SourceRange range;
    Time cost = GraphNode::unset;
  };
  struct GraphEdge {
    uint32_t from, to;
    SourceRange range; ///< Of the node after it.
  };
  std::vector<Node> nodes;
  std::vector<GraphEdge> edges; ///< In the end sorted by `to`.
  uint32_t exit = 0;            ///< The end of its first chain.

  /// The node so called.
  std::optional<uint32_t> find(const Node &node) const {
    auto found = byName.find(keyOf(node));
    return found == byName.end() ? std::nullopt : std::optional(found->second);
  }
  uint32_t add(const Node &node) {
    byName[keyOf(node)] = uint32_t(nodes.size());
    nodes.push_back(node);
    return uint32_t(nodes.size() - 1);
  }
  /// Whether an arrow leads to a node, once they are sorted.
  bool hasArrowTo(uint32_t node) const {
    auto at = llvm::partition_point(
        edges, [&](const GraphEdge &edge) { return edge.to < node; });
    return at != edges.end() && at->to == node;
  }

private:
  using Key = std::pair<uint32_t, uint32_t>;
  static Key keyOf(const Node &node) { return {node.part.value, node.name}; }
  std::map<Key, uint32_t> byName; ///< While chains are added.
};

/// By kind; a kind without chains has none.
using LayerGraphs = std::map<uint32_t, LayerGraph>;

struct GraphBuilder {
  const Section &model;
  const ModelPartition &partition;
  const InstantiationContext &context;
  const Limits &limits = context.limits;
  Evaluator &evaluator = context.evaluator;
  DiagnosticEngine &diags = context.diags;
  Head &head = context.head;

  void run() {
    size_t before = diags.errorCount();
    Evaluator::Frame frame(evaluator, model.numLocals);
    evaluator.clearFailed();
    auto isOfNode = [](const auto &given) {
      return std::get<Cost>(given.first) == Cost::Node;
    };
    hasNodeCosts = head.costs.has({Cost::Node}) ||
                   llvm::any_of(partition.layers, [&](const LayerFacts &facts) {
                     return llvm::any_of(facts.costs, isOfNode);
                   });
    for (size_t layer = 0; layer != partition.layers.size(); ++layer)
      layers.push_back(layerGraphsOf(layer));
    for (uint32_t pipe = 0; pipe != head.pipes.size(); ++pipe)
      if (diags.errorCount() == before && !evaluator.failed())
        stages(PipeId(pipe));
    if (diags.errorCount() == before)
      for (const ast::PatternItem *item : model.patterns)
        pattern(*item);
  }

  /// The graphs of a stage, by kind.
  using KindGraphs = std::map<uint32_t, uint32_t>;

  /// Whether there can be this many layers, nodes and arrows.
  bool fits(uint64_t count, SourceRange range) {
    if (count <= maxNodes)
      return true;
    evaluator.refuse<diag::TooManyNodes>(range, count, maxNodes);
    return false;
  }

  // ---- Drafts ----

  /// Of a layer: its chains or, where nodes have costs and it has none, one
  /// node for what it takes.
  LayerGraphs layerGraphsOf(size_t layer) {
    const LayerFacts &facts = partition.layers[layer];
    const ast::Identifier &name = model.layers[layer]->names.front();
    LayerGraphs result;
    for (const ast::ChainStmt *chain : facts.chains) {
      KindId kind = *head.kinds.find(chain->action.text);
      bool isFirst = !result.count(kind.value);
      addChain(*chain, kind, result[kind.value], isFirst);
    }
    for (auto &[kind, draft] : result) {
      for (LayerGraph::Node &node : draft.nodes)
        if (auto cost = facts.costs.find(
                {Cost::Node, node.part, graphs.names[node.name]});
            cost != facts.costs.end())
          node.cost = cost->second;
      if (!sortNodes(draft))
        reportCycle(KindId(kind), draft);
    }
    if (hasNodeCosts)
      for (auto [kind, time] : facts.times())
        if (!result.count(kind.value))
          result[kind.value].add(
              {kind, names(name.text), lanes("compute"), name.range, time});
    for (const auto &[kind, draft] : result)
      kinds.insert(kind);
    return result;
  }

  void addChain(const ast::ChainStmt &chain, KindId kind, LayerGraph &draft,
                bool isFirst) {
    std::optional<uint32_t> before;
    for (const ast::GraphLink &link : chain.links) {
      std::optional<uint32_t> node = nodeOf(link, kind, draft);
      if (!node)
        return;
      if (before)
        draft.edges.push_back({*before, *node, link.range});
      before = node;
      if (isFirst)
        draft.exit = *node;
    }
  }

  /// The node of a link, a new one if it says its lane.
  std::optional<uint32_t> nodeOf(const ast::GraphLink &link, KindId kind,
                                 LayerGraph &draft) {
    LayerGraph::Node node{kind, names(link.name.text), 0, link.range};
    if (!link.part.text.empty())
      node.part = *head.kinds.find(link.part.text);
    std::optional<uint32_t> known = draft.find(node);
    if (link.lane.text.empty()) {
      if (!known)
        diags.report<diag::NodeWithoutLane>(link.range, link.name.text);
      return known;
    }
    if (known)
      return diags.report<diag::NodeTwice>(link.range, link.name.text)
          .note(draft.nodes[*known].range, "the first is here");
    node.lane = lanes(link.lane.text);
    if (graphs.lanes.size() > NodeGraphs::maxLanes)
      return diags.report<diag::OutOfRange>(
          link.lane.range, "the number of lanes", graphs.lanes.size(), 1,
          NodeGraphs::maxLanes);
    return draft.add(node);
  }

  /// By node: those that its arrows lead to or, turned round, come from.
  static std::vector<std::vector<uint32_t>> neighbours(const LayerGraph &draft,
                                                       bool isReversed) {
    std::vector<std::vector<uint32_t>> result(draft.nodes.size());
    for (const LayerGraph::GraphEdge &edge : draft.edges)
      result[isReversed ? edge.to : edge.from].push_back(isReversed ? edge.from
                                                                    : edge.to);
    return result;
  }

  /// The nodes, each after those that it needs or, turned round, that need it,
  /// as near to their order as that allows; without those that stand in cycles
  /// or after some. O(n log n) for n nodes and arrows.
  static std::vector<uint32_t> topologicalOrder(const LayerGraph &draft,
                                                bool isReversed) {
    auto next = neighbours(draft, isReversed);
    std::vector<uint32_t> missing(draft.nodes.size()), result;
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
    for (const LayerGraph::GraphEdge &edge : draft.edges)
      ++missing[isReversed ? edge.from : edge.to];
    for (uint32_t node = 0; node != missing.size(); ++node)
      if (missing[node] == 0)
        ready.push(node);
    while (!ready.empty()) {
      result.push_back(ready.top());
      ready.pop();
      for (uint32_t successor : next[result.back()])
        if (--missing[successor] == 0)
          ready.push(successor);
    }
    return result;
  }

  /// Orders the nodes; false when there is no such order.
  static bool sortNodes(LayerGraph &draft) {
    std::vector<uint32_t> order = topologicalOrder(draft, false),
                          place(draft.nodes.size());
    if (order.size() != place.size())
      return false;
    std::vector<LayerGraph::Node> nodes;
    for (uint32_t node : order) {
      place[node] = uint32_t(nodes.size());
      nodes.push_back(draft.nodes[node]);
    }
    draft.nodes = std::move(nodes);
    for (LayerGraph::GraphEdge &edge : draft.edges)
      edge = {place[edge.from], place[edge.to], edge.range};
    llvm::sort(draft.edges, [](const LayerGraph::GraphEdge &a,
                               const LayerGraph::GraphEdge &b) {
      return std::pair(a.to, a.from) < std::pair(b.to, b.from);
    });
    if (!place.empty())
      draft.exit = place[draft.exit];
    return true;
  }

  void reportCycle(KindId kind, const LayerGraph &draft) {
    // Nodes that lead nowhere, or only to such, do not stand in a cycle.
    auto next = neighbours(draft, false);
    BitVector left(next.size(), true), seen(next.size());
    for (uint32_t node : topologicalOrder(draft, true))
      left.reset(node);
    std::vector<uint32_t> path;
    uint32_t node = left.find_first();
    for (; !seen[node]; node = *llvm::find_if(
                            next[node], [&](uint32_t n) { return left[n]; })) {
      seen.set(node);
      path.push_back(node);
    }
    path.erase(path.begin(), llvm::find(path, node));
    auto closing =
        llvm::find_if(draft.edges, [&](const LayerGraph::GraphEdge &edge) {
          return edge.from == path.back() && edge.to == node;
        });
    path.push_back(node);
    auto names = llvm::map_range(
        path, [&](uint32_t passed) { return nameOf(draft.nodes[passed]); });
    diags.report<diag::NodesInCycle>(closing->range, head.kinds[kind].mnemonic,
                                     fmt::join(names, " -> "));
  }

  std::string nameOf(const LayerGraph::Node &node) const {
    return head.kinds[node.part].mnemonic + "." + graphs.names[node.name];
  }

  // ---- Stages ----

  void stages(PipeId pipe) {
    std::map<uint32_t, GraphUse> uses;
    const auto &stages = partition.of(pipe).stages;
    size_t count = stages.size();
    for (size_t stage = 0; stage != count; ++stage) {
      const KindGraphs *made = graphsOf(stages[stage]);
      if (!made)
        return;
      for (auto [kind, graph] : *made) {
        GraphUse &use = uses[kind];
        use.graphs.resize(count, GraphUse::none);
        use.graphs[stage] = graph;
      }
    }
    for (auto &[kind, use] : uses) {
      use.kind = KindId(kind);
      use.pipe = pipe;
      if (llvm::all_equal(use.graphs))
        use.graphs.resize(1);
      graphs.uses.push_back(std::move(use));
    }
  }

  /// The graphs of a stage with these layers; those of an earlier one when that
  /// has the same.
  const KindGraphs *graphsOf(const std::vector<PlacedLayer> &stage) {
    auto [found, isNew] = made.try_emplace(stage);
    if (!isNew)
      return &found->second;
    total += stage.size();
    if (!fits(total, model.range))
      return nullptr;
    for (uint32_t kind : kinds) {
      if (!flatten(KindId(kind), stage))
        return nullptr;
      found->second[kind] = uint32_t(graphs.graphs.size() - 1);
    }
    return &found->second;
  }

  /// Whether an action comes to the last layer first.
  bool runsLayersBackwards(KindId kind) const {
    return head.kinds[kind].defines & (slot::InputGrad | slot::WeightGrad);
  }

  /// Adds the graph of an action: the nodes of its layers, upwards unless it
  /// makes gradients. What begins in a layer waits for the end of the one
  /// before.
  bool flatten(KindId kind, ArrayRef<PlacedLayer> stage) {
    NodeGraph graph;
    graph.kind = kind;
    graph.down = runsLayersBackwards(kind);
    std::vector<uint32_t> numbers; // By place.
    for (PlacedLayer layer : stage)
      numbers.push_back(layer.isNumbered ? graph.layers++ : GraphNode::noLayer);
    std::vector<SourceRange> nodeRanges;
    std::optional<uint32_t> exit;
    uint64_t needs = 0;
    for (size_t turn = 0; turn != stage.size(); ++turn) {
      size_t at = graph.down ? stage.size() - 1 - turn : turn;
      const LayerGraphs &all = layers[stage[at].layer];
      auto found = all.find(kind.value);
      if (found == all.end())
        continue;
      const LayerGraph &layer = found->second;
      uint32_t first = uint32_t(graph.nodes.size());
      for (auto [i, node] : llvm::enumerate(layer.nodes)) {
        GraphNode &added = graph.nodes.emplace_back(
            GraphNode{node.part, node.name, node.lane, numbers[at], {}});
        added.cost = node.cost;
        if (!layer.hasArrowTo(i) && exit)
          added.needs.push_back(*exit);
        if (!checkHook(node, graph, added))
          return false;
        nodeRanges.push_back(node.range);
      }
      for (const LayerGraph::GraphEdge &edge : layer.edges) {
        std::vector<uint32_t> &list = graph.nodes[first + edge.to].needs;
        if (list.empty() || list.back() != first + edge.from)
          list.push_back(first + edge.from); // Arrows to one node come sorted.
      }
      needs += layer.edges.size() + 1;
      exit = first + layer.exit;
      if (!fits(total + graph.nodes.size() + needs, model.range))
        return false;
    }
    total += graph.nodes.size() + needs;
    graphs.graphs.push_back(std::move(graph));
    ranges.push_back(std::move(nodeRanges));
    return true;
  }

  /// At `recv` and `send` a stage meets others, which it does once.
  bool checkHook(const LayerGraph::Node &node, const NodeGraph &graph,
                 const GraphNode &added) {
    StringRef name = graphs.names[node.name];
    if ((name != hook::recv && name != hook::send) ||
        (added.layer == GraphNode::noLayer && added.part == graph.kind))
      return true;
    return diags.report<diag::HookInLayer>(node.range, name);
  }

  // ---- Patterns ----

  void pattern(const ast::PatternItem &item) {
    evaluator.clearFailed();
    NodePattern pattern;
    for (const ast::Identifier &action : item.actions)
      pattern.kinds.push_back(*head.kinds.find(action.text));
    PatternKeys places;
    size_t before = diags.errorCount();
    std::vector<PatternNode> *part = &pattern.before;
    auto add = [&](const ast::Stmt *stmt, bool inLayer) {
      part->push_back(place(*cast<ast::PlaceStmt>(stmt), inLayer, places));
      return true;
    };
    bool whole = evaluator.walk(item.body, [&](const ast::Stmt *stmt) {
      auto *each = dyn_cast<ast::NamedItem>(stmt);
      if (!each)
        return add(stmt, false);
      part = &pattern.layer;
      bool isWhole = evaluator.walk(
          each->body, [&](const ast::Stmt *inner) { return add(inner, true); });
      part = &pattern.after;
      return isWhole;
    });
    if (!whole || diags.errorCount() != before)
      return;
    for (KindId kind : pattern.kinds)
      for (const PipePartition &made : partition.partitions)
        for (const auto &stage : made.stages)
          placeWhole(kind, stage, pattern, places);
    for (auto [i, graph] : llvm::enumerate(graphs.graphs)) {
      if (!llvm::is_contained(pattern.kinds, graph.kind))
        continue;
      for (uint64_t left = patternPositions(pattern, graph); left != 0; --left)
        if (!evaluator.step(item.range))
          return;
      if (auto fault = findPatternError(pattern, graph)) {
        reportFault(item, pattern, places, *fault, graph, ranges[i]);
        return;
      }
    }
    graphs.patterns.push_back(std::move(pattern));
  }

  /// Where the nodes of a pattern stand in the source: by part, name, whether
  /// it is of a layer, and `last`.
  using PatternKey = std::tuple<uint32_t, uint32_t, bool, bool>;
  using PatternKeys = std::map<PatternKey, SourceRange>;
  static PatternKey patternKeyOf(const PatternNode &node, bool inLayer) {
    return {node.part.value, node.name, inLayer || node.last, node.last};
  }

  PatternNode place(const ast::PlaceStmt &stmt, bool inLayer,
                    PatternKeys &places) {
    PatternNode node{*head.kinds.find(stmt.part.text), names(stmt.name.text),
                     !stmt.modifier.text.empty()};
    auto [first, isNew] =
        places.try_emplace(patternKeyOf(node, inLayer), stmt.range);
    if (!isNew)
      diags
          .report<diag::PlacedTwice>(stmt.range, stmt.part.text.str() + "." +
                                                     stmt.name.text.str())
          .note(first->second, "the first is here");
    return node;
  }

  /// Gives places to layers that say what they take, and not of which nodes:
  /// before those with numbers, or after, as the action comes to them.
  void placeWhole(KindId kind, ArrayRef<PlacedLayer> stage,
                  NodePattern &pattern, PatternKeys &places) {
    bool isBehind = false;
    for (size_t turn = 0; turn != stage.size(); ++turn) {
      PlacedLayer at =
          stage[runsLayersBackwards(kind) ? stage.size() - 1 - turn : turn];
      const ast::Identifier &layer = model.layers[at.layer]->names.front();
      bool isWhole =
          layers[at.layer].count(kind.value) &&
          !partition.layers[at.layer].hasChain(head.kinds[kind].mnemonic);
      auto &nodes = at.isNumbered ? pattern.layer
                    : isBehind    ? pattern.after
                                  : pattern.before;
      isBehind |= at.isNumbered;
      if (!isWhole)
        continue;
      PatternNode node{kind, names(layer.text), false};
      if (places.try_emplace(patternKeyOf(node, at.isNumbered), layer.range)
              .second)
        nodes.push_back(node);
    }
  }

  void reportFault(const ast::PatternItem &item, const NodePattern &pattern,
                   const PatternKeys &places, const PatternError &fault,
                   const NodeGraph &graph,
                   const std::vector<SourceRange> &nodeRanges) {
    auto name = [&](uint32_t node) {
      const GraphNode &found = graph.nodes[node];
      return head.kinds[found.part].mnemonic + "." + graphs.pathOf(found);
    };
    if (!fault.needed) {
      diags.report<diag::PatternMissingNode>(item.range, name(fault.node))
          .note(nodeRanges[fault.node], "the node is declared here");
      return;
    }
    bool inLayer = llvm::any_of(pattern.layer, [&](const PatternNode &node) {
      return &node == fault.place;
    });
    diags
        .report<diag::PatternOrder>(
            places.at(patternKeyOf(*fault.place, inLayer)), name(fault.node),
            name(*fault.needed))
        .note(nodeRanges[fault.node], "`{}` is declared here", name(fault.node))
        .note(nodeRanges[*fault.needed], "`{}` is declared here",
              name(*fault.needed));
  }

  NodeGraphs &graphs = head.nodes;
  StringInterner names{graphs.names}, lanes{graphs.lanes};
  const uint64_t maxNodes =
      std::min<uint64_t>(limits.maxActions, NodeGraphs::maxNodes);
  uint64_t total = 0;        ///< Layers, nodes and arrows of the graphs so far.
  bool hasNodeCosts = false; ///< Some nodes say what they take.
  std::vector<LayerGraphs> layers{}; ///< As declared.
  std::set<uint32_t> kinds{};        ///< Those that have nodes.
  std::map<std::vector<PlacedLayer>, KindGraphs> made{};
  std::vector<std::vector<SourceRange>> ranges{}; ///< By graph and node.
};

} // namespace

void sema::buildGraphs(const Section &model, const ModelPartition &partition,
                       const InstantiationContext &context) {
  GraphBuilder{model, partition, context}.run();
}
