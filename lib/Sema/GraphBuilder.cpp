// Evaluates the stage graph of a schedule.
#include "GraphBuilder.h"

#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Sema/Walk.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <map>
#include <queue>

using namespace ppcc;
using namespace ppcc::sema;
using llvm::ArrayRef;
using llvm::cast;
using llvm::dyn_cast;
using llvm::StringRef;

namespace {

/// Numbers words in the order in which they come.
class Words {
public:
  explicit Words(std::vector<std::string> &words) : words(words) {}

  uint32_t operator[](StringRef word) {
    auto [found, isNew] =
        numbers.try_emplace(word, static_cast<uint32_t>(words.size()));
    if (isNew)
      words.push_back(word.str());
    return found->second;
  }

private:
  std::vector<std::string> &words;
  llvm::StringMap<uint32_t> numbers;
};

/// The chains of one action in one layer, or outside the layers, as a graph.
struct Draft {
  struct Node {
    KindId part;
    uint32_t name = 0, lane = 0;
    bool isLayers = false; ///< All layers together.
    SourceRange range;
  };
  struct Arrow {
    uint32_t from, to;
    SourceRange range; ///< Of the node behind it.
  };
  std::vector<Node> nodes;
  std::vector<Arrow> arrows;    ///< In the end sorted by `to`.
  uint32_t entry = 0, exit = 0; ///< The ends of its first chain.
  std::optional<bool> down;     ///< The direction of the layers.

  /// The node so called, or the layers.
  std::optional<uint32_t> find(const Node &node) const {
    auto found = byName.find(keyOf(node));
    return found == byName.end() ? std::nullopt : std::optional(found->second);
  }
  uint32_t add(const Node &node) {
    byName[keyOf(node)] = static_cast<uint32_t>(nodes.size());
    nodes.push_back(node);
    return static_cast<uint32_t>(nodes.size() - 1);
  }
  /// The arrows that lead to a node, once they are sorted.
  ArrayRef<Arrow> arrowsTo(uint32_t node) const {
    auto less = [](const Arrow &arrow, uint32_t to) { return arrow.to < to; };
    auto begin = std::lower_bound(arrows.begin(), arrows.end(), node, less);
    auto end = std::lower_bound(begin, arrows.end(), node + 1, less);
    return ArrayRef(arrows).slice(begin - arrows.begin(), end - begin);
  }

private:
  using Key = std::tuple<bool, uint32_t, uint32_t>;
  static Key keyOf(const Node &node) {
    return node.isLayers ? Key(true, 0, 0)
                         : Key(false, node.part.value, node.name);
  }
  std::map<Key, uint32_t> byName; ///< While chains are added.
};

/// By kind; a kind without chains has none.
using Drafts = std::map<uint32_t, Draft>;

/// What a stage is made of: the numbers of its layers, and its own chains.
struct StageParts {
  std::vector<uint32_t> layers;
  std::vector<const ast::ChainStmt *> chains;
  auto operator<=>(const StageParts &) const = default;
};

class GraphBuilder {
public:
  GraphBuilder(const Schedule &schedule, const Limits &limits,
               Evaluator &evaluator, Head &program, DiagnosticEngine &diags)
      : schedule(schedule), evaluator(evaluator), program(program),
        diags(diags), graphs(program.nodes), names(graphs.names),
        lanes(graphs.lanes),
        maxNodes(std::min<uint64_t>(limits.maxActions, NodeGraphs::maxNodes)) {}

  void run() {
    size_t before = diags.errorCount();
    size_t previous = evaluator.pushFrame(schedule.headerLocals);
    evaluator.clearFailed();
    for (const ast::LayerItem *item : schedule.layers) {
      layerNumber[item->name.text] = static_cast<uint32_t>(layers.size());
      StageParts parts;
      collect(item->body, parts);
      layers.push_back(drafts(parts.chains));
    }
    for (uint32_t pipe = 0; pipe != program.pipes.size(); ++pipe)
      if (diags.errorCount() == before && !evaluator.failed())
        stages(PipeId(pipe));
    if (diags.errorCount() == before)
      for (const ast::PatternItem *item : schedule.patterns)
        pattern(*item);
    evaluator.popFrame(previous);
  }

private:
  /// The graphs of a stage, by kind.
  using KindGraphs = std::map<uint32_t, uint32_t>;

  // ---- What stands in graphs ----

  /// The layers and chains of a body.
  bool collect(ast::Body body, StageParts &parts) {
    return walk(evaluator, body, [&](const ast::Stmt *stmt) {
      if (auto *chain = dyn_cast<ast::ChainStmt>(stmt))
        parts.chains.push_back(chain);
      else
        parts.layers.push_back(
            layerNumber[cast<ast::UseLayerStmt>(stmt)->name.text]);
      return fits(parts.layers.size() + parts.chains.size(), stmt->range);
    });
  }

  /// Whether there can be this many layers, nodes and arrows.
  bool fits(uint64_t count, SourceRange range) {
    if (count <= maxNodes)
      return true;
    if (evaluator.fail(diag::TooManyNodes, range))
      diags.report<diag::TooManyNodes>(range, count, maxNodes);
    return false;
  }

  // ---- Drafts ----

  Drafts drafts(ArrayRef<const ast::ChainStmt *> chains) {
    Drafts result;
    for (const ast::ChainStmt *chain : chains) {
      KindId kind = *program.kinds.find(chain->action.text);
      bool isFirst = !result.count(kind.value);
      addChain(*chain, kind, result[kind.value], isFirst);
    }
    for (auto &[kind, draft] : result)
      if (!sortNodes(draft))
        reportCircle(KindId(kind), draft);
    return result;
  }

  void addChain(const ast::ChainStmt &chain, KindId kind, Draft &draft,
                bool isFirst) {
    std::optional<uint32_t> before;
    for (const ast::GraphLink &link : chain.links) {
      std::optional<uint32_t> node = nodeOf(link, kind, draft);
      if (!node)
        return;
      if (before)
        draft.arrows.push_back({*before, *node, link.range});
      if (isFirst)
        (before ? draft.exit : draft.entry) = *node;
      before = node;
      if (isFirst)
        draft.exit = *node;
    }
  }

  /// The node of a link, a new one if it says its lane.
  std::optional<uint32_t> nodeOf(const ast::GraphLink &link, KindId kind,
                                 Draft &draft) {
    Draft::Node node{kind, 0, 0, link.isLayers, link.range};
    if (link.isLayers)
      setDirection(link, kind, draft);
    else
      node.name = names[link.name.text];
    if (!link.part.text.empty())
      node.part = *program.kinds.find(link.part.text);
    std::optional<uint32_t> known = draft.find(node);
    if (link.isLayers || !link.lane.text.empty()) {
      if (known && !link.isLayers) {
        diags.report<diag::NodeTwice>(link.range, link.name.text)
            .note(draft.nodes[*known].range, "the first is here");
        return std::nullopt;
      }
      if (!known) {
        if (!link.isLayers &&
            !(node.lane = lanes[link.lane.text], lanesFit(link.lane)))
          return std::nullopt;
        known = draft.add(node);
      }
    } else if (!known) {
      diags.report<diag::NodeWithoutLane>(link.range, link.name.text);
    }
    return known;
  }

  bool lanesFit(const ast::Identifier &lane) {
    if (graphs.lanes.size() <= NodeGraphs::maxLanes)
      return true;
    diags.report<diag::OutOfRange>(lane.range, "the number of lanes",
                                   graphs.lanes.size(), 1,
                                   NodeGraphs::maxLanes);
    return false;
  }

  void setDirection(const ast::GraphLink &link, KindId kind, Draft &draft) {
    if (link.direction.text.empty())
      return;
    bool down = link.direction.text == "down";
    if (draft.down.value_or(down) != down)
      diags.report<diag::LayersBothWays>(link.range,
                                         program.kinds[kind].letters);
    draft.down = down;
  }

  /// By node: those that its arrows lead to or, turned round, come from.
  static std::vector<std::vector<uint32_t>> neighbours(const Draft &draft,
                                                       bool turned) {
    std::vector<std::vector<uint32_t>> result(draft.nodes.size());
    for (const Draft::Arrow &arrow : draft.arrows)
      result[turned ? arrow.to : arrow.from].push_back(turned ? arrow.from
                                                              : arrow.to);
    return result;
  }

  /// Puts each node behind those that it needs, as near to the order of the
  /// text as that allows. False when there is no such order. O(n log n) for n
  /// nodes and arrows.
  static bool sortNodes(Draft &draft) {
    auto next = neighbours(draft, false);
    std::vector<uint32_t> missing(draft.nodes.size());
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
    for (const Draft::Arrow &arrow : draft.arrows)
      ++missing[arrow.to];
    for (uint32_t node = 0; node != missing.size(); ++node)
      if (missing[node] == 0)
        ready.push(node);
    std::vector<uint32_t> place(missing.size());
    std::vector<Draft::Node> nodes;
    while (!ready.empty()) {
      uint32_t node = ready.top();
      ready.pop();
      place[node] = static_cast<uint32_t>(nodes.size());
      nodes.push_back(draft.nodes[node]);
      for (uint32_t behind : next[node])
        if (--missing[behind] == 0)
          ready.push(behind);
    }
    if (nodes.size() != draft.nodes.size())
      return false;
    draft.nodes = std::move(nodes);
    for (Draft::Arrow &arrow : draft.arrows)
      arrow = {place[arrow.from], place[arrow.to], arrow.range};
    llvm::sort(draft.arrows, [](const Draft::Arrow &a, const Draft::Arrow &b) {
      return std::pair(a.to, a.from) < std::pair(b.to, b.from);
    });
    if (!place.empty()) {
      draft.entry = place[draft.entry];
      draft.exit = place[draft.exit];
    }
    return true;
  }

  void reportCircle(KindId kind, const Draft &draft) {
    // Nodes that lead nowhere, or only to such, do not stand in a circle.
    auto next = neighbours(draft, false), before = neighbours(draft, true);
    std::vector<uint32_t> left, ends;
    for (uint32_t node = 0; node != next.size(); ++node) {
      left.push_back(static_cast<uint32_t>(next[node].size()));
      if (left.back() == 0)
        ends.push_back(node);
    }
    for (size_t i = 0; i != ends.size(); ++i)
      for (uint32_t node : before[ends[i]])
        if (--left[node] == 0)
          ends.push_back(node);
    uint32_t node = 0;
    while (left[node] == 0)
      ++node;
    std::vector<bool> seen(next.size());
    std::vector<uint32_t> way;
    for (; !seen[node]; node = *llvm::find_if(next[node], [&](uint32_t n) {
                          return left[n] != 0;
                        })) {
      seen[node] = true;
      way.push_back(node);
    }
    way.erase(way.begin(), llvm::find(way, node));
    auto closing = llvm::find_if(draft.arrows, [&](const Draft::Arrow &arrow) {
      return arrow.from == way.back() && arrow.to == node;
    });
    way.push_back(node);
    std::string text;
    for (uint32_t passed : way)
      text += (text.empty() ? "" : " -> ") + nameOf(draft.nodes[passed]);
    diags.report<diag::NodesInCircle>(closing->range,
                                      program.kinds[kind].letters, text);
  }

  std::string nameOf(const Draft::Node &node) const {
    return node.isLayers ? "per layer"
                         : program.kinds[node.part].letters + "." +
                               graphs.names[node.name];
  }

  // ---- Stages ----

  void stages(PipeId pipe) {
    std::map<uint32_t, GraphUse> uses;
    uint32_t count = program.pipes[pipe.value].numStages();
    for (uint32_t stage = 0; stage != count; ++stage) {
      evaluator.local(schedule.graphSlot) = {.i = stage};
      StageParts parts;
      if (!collect(schedule.graph->body, parts))
        return;
      const KindGraphs *made = graphsOf(parts);
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

  /// The graphs of a stage with these parts; those of an earlier one when that
  /// has the same.
  const KindGraphs *graphsOf(const StageParts &parts) {
    auto [found, isNew] = made.try_emplace(parts);
    if (!isNew)
      return &found->second;
    total += parts.layers.size();
    if (!fits(total, schedule.graph->range))
      return nullptr;
    size_t before = diags.errorCount();
    Drafts own = drafts(parts.chains);
    if (diags.errorCount() != before)
      return nullptr;
    for (const auto &[kind, draft] : own) {
      if (!flatten(KindId(kind), draft, parts.layers))
        return nullptr;
      found->second[kind] = static_cast<uint32_t>(graphs.graphs.size() - 1);
    }
    return &found->second;
  }

  /// Adds the graph of an action: its own nodes, with those of its layers where
  /// `per layer` stands.
  bool flatten(KindId kind, const Draft &draft,
               ArrayRef<uint32_t> stageLayers) {
    NodeGraph graph;
    graph.kind = kind;
    graph.down = draft.down.value_or(false);
    Flat flat{graph, {}, {}, 0};
    std::vector<uint32_t> place(draft.nodes.size()); // Of the layers: unused.
    for (auto [i, node] : llvm::enumerate(draft.nodes)) {
      if (node.isLayers) {
        graph.layers = static_cast<uint32_t>(stageLayers.size());
        if (!addLayers(kind, stageLayers, draft, i, place, flat))
          return false;
        continue;
      }
      place[i] = add(flat, node, GraphNode::noLayer);
      if (!connect(draft, i, place, flat))
        return false;
    }
    total += flat.size();
    graphs.graphs.push_back(std::move(graph));
    ranges.push_back(std::move(flat.ranges));
    return true;
  }

  struct Flat {
    NodeGraph &graph;
    std::vector<SourceRange> ranges; ///< By node.
    std::optional<uint32_t> layerExit;
    uint64_t needs = 0;

    uint64_t size() const { return graph.nodes.size() + needs; }
  };

  static uint32_t add(Flat &flat, const Draft::Node &node, uint32_t layer) {
    flat.graph.nodes.push_back({node.part, node.name, node.lane, layer, {}});
    flat.ranges.push_back(node.range);
    return static_cast<uint32_t>(flat.graph.nodes.size() - 1);
  }

  /// Arrows to one node come sorted, so the same ones stand side by side.
  static void addNeed(Flat &flat, uint32_t from, uint32_t to) {
    std::vector<uint32_t> &needs = flat.graph.nodes[to].needs;
    if (!needs.empty() && needs.back() == from)
      return;
    needs.push_back(from);
    ++flat.needs;
  }

  /// Lets a node of the stage's own wait for what its arrows come from; behind
  /// layers without a node, for what comes before these.
  bool connect(const Draft &draft, uint32_t node, ArrayRef<uint32_t> place,
               Flat &flat) {
    for (const Draft::Arrow &arrow : draft.arrowsTo(node))
      if (!draft.nodes[arrow.from].isLayers)
        addNeed(flat, place[arrow.from], place[node]);
      else if (flat.layerExit)
        addNeed(flat, *flat.layerExit, place[node]);
      else
        for (const Draft::Arrow &earlier : draft.arrowsTo(arrow.from))
          addNeed(flat, place[earlier.from], place[node]);
    return fits(total + flat.size(), schedule.graph->range);
  }

  bool addLayers(KindId kind, ArrayRef<uint32_t> stageLayers,
                 const Draft &draft, uint32_t layersNode,
                 ArrayRef<uint32_t> place, Flat &flat) {
    for (uint32_t turn = 0; turn != stageLayers.size(); ++turn) {
      uint32_t number = flat.graph.layerAt(turn);
      const Drafts &all = layers[stageLayers[number]];
      auto found = all.find(kind.value);
      if (found == all.end())
        continue;
      const Draft &layer = found->second;
      uint32_t first = static_cast<uint32_t>(flat.graph.nodes.size());
      for (const Draft::Node &node : layer.nodes)
        add(flat, node, number);
      for (const Draft::Arrow &arrow : layer.arrows)
        addNeed(flat, first + arrow.from, first + arrow.to);
      if (flat.layerExit)
        addNeed(flat, *flat.layerExit, first + layer.entry);
      else
        for (const Draft::Arrow &arrow : draft.arrowsTo(layersNode))
          addNeed(flat, place[arrow.from], first + layer.entry);
      flat.layerExit = first + layer.exit;
      if (!fits(total + flat.size(), schedule.graph->range))
        return false;
    }
    return true;
  }

  // ---- Patterns ----

  void pattern(const ast::PatternItem &item) {
    evaluator.clearFailed();
    NodePattern pattern;
    for (const ast::Identifier &action : item.actions)
      pattern.kinds.push_back(*program.kinds.find(action.text));
    Places places;
    size_t before = diags.errorCount();
    std::vector<PatternNode> *part = &pattern.before;
    std::vector<SourceRange> *partRanges = &places.before;
    bool whole = walk(evaluator, item.body, [&](const ast::Stmt *stmt) {
      if (auto *perLayer = dyn_cast<ast::PerLayerStmt>(stmt)) {
        part = &pattern.after;
        partRanges = &places.after;
        return walk(evaluator, perLayer->body, [&](const ast::Stmt *inner) {
          addPlace(*cast<ast::PlaceStmt>(inner), pattern.layer, places.layer,
                   places);
          return true;
        });
      }
      addPlace(*cast<ast::PlaceStmt>(stmt), *part, *partRanges, places);
      return true;
    });
    if (!whole || diags.errorCount() != before)
      return;
    for (auto [i, graph] : llvm::enumerate(graphs.graphs)) {
      if (!llvm::is_contained(pattern.kinds, graph.kind))
        continue;
      for (uint64_t left = placesOf(pattern, graph); left != 0; --left)
        if (!evaluator.step(item.range))
          return;
      if (auto fault = findFault(pattern, graph)) {
        reportFault(item, pattern, places, *fault, graph, ranges[i]);
        return;
      }
    }
    graphs.patterns.push_back(std::move(pattern));
  }

  /// Where the nodes of a pattern stand in the source.
  struct Places {
    std::vector<SourceRange> before, layer, after;
    /// By part, name, and whether it is of a layer, and `last`.
    std::map<std::tuple<uint32_t, uint32_t, bool, bool>, SourceRange> known;
  };

  void addPlace(const ast::PlaceStmt &stmt, std::vector<PatternNode> &part,
                std::vector<SourceRange> &ranges, Places &places) {
    PatternNode node{*program.kinds.find(stmt.part.text), names[stmt.name.text],
                     !stmt.modifier.text.empty()};
    bool inLayer = node.last || &ranges == &places.layer;
    auto [first, isNew] = places.known.try_emplace(
        {node.part.value, node.name, inLayer, node.last}, stmt.range);
    if (!isNew)
      diags
          .report<diag::PlacedTwice>(stmt.range, stmt.part.text.str() + "." +
                                                     stmt.name.text.str())
          .note(first->second, "the first is here");
    part.push_back(node);
    ranges.push_back(stmt.range);
  }

  void reportFault(const ast::PatternItem &item, const NodePattern &pattern,
                   const Places &places, const PatternFault &fault,
                   const NodeGraph &graph,
                   const std::vector<SourceRange> &nodeRanges) {
    auto name = [&](uint32_t node) {
      const GraphNode &found = graph.nodes[node];
      return program.kinds[found.part].letters + "." + graphs.pathOf(found);
    };
    if (!fault.needed) {
      diags.report<diag::PatternMisses>(item.range, name(fault.node))
          .note(nodeRanges[fault.node], "the node is declared here");
      return;
    }
    SourceRange range = item.range;
    for (auto [nodes, known] : {std::pair(&pattern.before, &places.before),
                                std::pair(&pattern.layer, &places.layer),
                                std::pair(&pattern.after, &places.after)})
      for (auto [node, at] : llvm::zip(*nodes, *known))
        if (&node == fault.place)
          range = at;
    diags
        .report<diag::PatternOrder>(range, name(fault.node),
                                    name(*fault.needed))
        .note(nodeRanges[fault.node], "`{}` is declared here", name(fault.node))
        .note(nodeRanges[*fault.needed], "`{}` is declared here",
              name(*fault.needed));
  }

  const Schedule &schedule;
  Evaluator &evaluator;
  Head &program;
  DiagnosticEngine &diags;
  NodeGraphs &graphs;
  Words names, lanes;
  const uint64_t maxNodes;
  uint64_t total = 0; ///< Layers, nodes and arrows of the graphs so far.
  llvm::StringMap<uint32_t> layerNumber;
  std::vector<Drafts> layers; ///< As declared.
  std::map<StageParts, KindGraphs> made;
  std::vector<std::vector<SourceRange>> ranges; ///< By graph and node.
};

} // namespace

void sema::buildGraphs(const Schedule &schedule, const Limits &limits,
                       Evaluator &evaluator, Head &program,
                       DiagnosticEngine &diags) {
  GraphBuilder(schedule, limits, evaluator, program, diags).run();
}
