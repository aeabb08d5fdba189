// Writes the graphs of nodes of a program as JSON.
#include "JsonParts.h"

using namespace ppcc;

static int64_t orNone(uint32_t number, uint32_t none) {
  return number == none ? -1 : int64_t(number);
}

static void putGraph(Writer &writer, const NodeGraph &graph) {
  writer.put('\n');
  writer.object([&](JsonFields &fields) {
    fields("kind", graph.kind);
    fields("layers", graph.layers);
    fields("down", graph.down);
    auto put = [&](const GraphNode &node) {
      std::vector<int64_t> row{node.part.value, node.name, node.lane,
                               orNone(node.layer, GraphNode::noLayer)};
      row.insert(row.end(), node.needs.begin(), node.needs.end());
      writer.list(row, [&](int64_t number) { writer.put(number); });
    };
    fields.list("nodes", graph.nodes, put, ",");
    auto putCost = [&](const GraphNode &node) {
      writer.put(cost::format(std::max<Time>(node.cost, 0)));
    };
    if (graph.hasCosts())
      fields.list("costs", graph.nodes, putCost, ",");
  });
}

static void putUse(Writer &writer, const GraphUse &use) {
  writer.object([&](JsonFields &fields) {
    fields("kind", use.kind);
    fields("pipe", use.pipe);
    auto put = [&](uint32_t graph) {
      writer.put(orNone(graph, GraphUse::none));
    };
    fields.list("graphs", use.graphs, put, ",");
  });
}

static void putPattern(Writer &writer, const NodePattern &pattern) {
  writer.object([&](JsonFields &fields) {
    fields.values("kinds", pattern.kinds, ",");
    for (auto [name, nodes] : {std::pair("before", &pattern.before),
                               std::pair("layer", &pattern.layer),
                               std::pair("after", &pattern.after)})
      fields.list(
          name, *nodes,
          [&](const PatternNode &node) {
            writer.numbers({node.part.value, node.name, node.last});
          },
          ",");
  });
}

void ppcc::putNodes(Writer &writer, const NodeGraphs &nodes) {
  writer.object([&](JsonFields &fields) {
    fields.values("lanes", nodes.lanes, ",");
    fields.values("names", nodes.names, ",");
    fields.onLines();
    auto with = [&](auto put) {
      return [&, put](const auto &item) { put(writer, item); };
    };
    fields.list("graphs", nodes.graphs, with(putGraph), ",");
    fields.list("uses", nodes.uses, with(putUse), ",");
    fields.list("patterns", nodes.patterns, with(putPattern), ",");
  });
}
