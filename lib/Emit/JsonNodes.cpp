// Writes the graphs of nodes of a program as JSON.
#include "Emitters.h"

using namespace ppcc;

static constexpr JsonStyle tight{.lists = ","};

static int64_t orNone(uint32_t number, uint32_t none) {
  return number == none ? -1 : int64_t(number);
}

void ppcc::putNodes(Writer &writer, const NodeGraphs &nodes) {
  auto graph = [&](JsonFields &fields, const NodeGraph &graph) {
    fields("kind", graph.kind);
    fields("layers", graph.layers);
    fields("down", graph.down);
    fields.list("nodes", graph.nodes, [&](const GraphNode &node) {
      std::vector<int64_t> row{node.part.value, node.name, node.lane,
                               orNone(node.layer, GraphNode::noLayer)};
      row.insert(row.end(), node.needs.begin(), node.needs.end());
      writer.list(row, [&](int64_t number) { writer.put(number); });
    });
    if (graph.hasCosts())
      fields.list("costs", graph.nodes, [&](const GraphNode &node) {
        writer.put(cost::format(std::max<Time>(node.cost, 0)));
      });
  };
  auto use = [&](JsonFields &fields, const GraphUse &use) {
    fields("kind", use.kind);
    fields("pipe", use.pipe);
    fields.list("graphs", use.graphs, [&](uint32_t graph) {
      writer.put(orNone(graph, GraphUse::none));
    });
  };
  auto pattern = [&](JsonFields &fields, const NodePattern &pattern) {
    auto put = [&](const PatternNode &node) {
      writer.numbers({node.part.value, node.name, node.last});
    };
    fields.values("kinds", pattern.kinds);
    fields.list("before", pattern.before, put);
    fields.list("layer", pattern.layer, put);
    fields.list("after", pattern.after, put);
  };
  auto members = [&](JsonFields &fields) {
    fields.values("lanes", nodes.lanes);
    fields.values("names", nodes.names);
    fields.onLines();
    fields.key("graphs");
    writer.list(nodes.graphs, [&](const NodeGraph &each) {
      writer.put('\n');
      writer.object([&](JsonFields &fields) { graph(fields, each); }, tight);
    });
    fields.objects("uses", nodes.uses, use);
    fields.objects("patterns", nodes.patterns, pattern);
  };
  writer.object(members, tight);
}
