// Writes the graphs of nodes of a program as JSON.
#include "JsonNodes.h"

using namespace ppcc;

namespace {

class NodesWriter {
public:
  NodesWriter(Writer &writer, const NodeGraphs &nodes)
      : writer(writer), nodes(nodes) {}

  void put() {
    writer.put("{\"lanes\": ");
    writer.list(nodes.lanes,
                [&](const std::string &lane) { writer.json(lane); });
    writer.put(", \"names\": ");
    writer.list(nodes.names,
                [&](const std::string &name) { writer.json(name); });
    writer.put(",\n\"graphs\": ");
    writer.list(nodes.graphs, [&](const NodeGraph &graph) { put(graph); });
    writer.put(",\n\"uses\": ");
    writer.list(nodes.uses, [&](const GraphUse &use) { put(use); });
    writer.put(",\n\"patterns\": ");
    writer.list(nodes.patterns,
                [&](const NodePattern &pattern) { put(pattern); });
    writer.put('}');
  }

private:
  void field(llvm::StringRef name, int64_t value) {
    writer.put(name);
    writer.number(value);
  }

  void put(const NodeGraph &graph) {
    field("\n{\"kind\": ", graph.kind.value);
    field(", \"layers\": ", graph.layers);
    writer.put(graph.down ? ", \"down\": true" : ", \"down\": false");
    writer.put(", \"nodes\": ");
    writer.list(graph.nodes, [&](const GraphNode &node) {
      field("[", node.part.value);
      field(",", node.name);
      field(",", node.lane);
      field(",", node.layer == GraphNode::noLayer ? -1 : int64_t(node.layer));
      for (uint32_t needed : node.needs)
        field(",", needed);
      writer.put(']');
    });
    writer.put('}');
  }

  void put(const GraphUse &use) {
    field("{\"kind\": ", use.kind.value);
    field(", \"pipe\": ", use.pipe.value);
    writer.put(", \"graphs\": ");
    writer.list(use.graphs, [&](uint32_t graph) {
      writer.number(graph == GraphUse::none ? -1 : int64_t(graph));
    });
    writer.put('}');
  }

  void put(const NodePattern &pattern) {
    writer.put("{\"kinds\": ");
    writer.list(pattern.kinds, [&](KindId kind) { writer.number(kind.value); });
    writer.put(", \"before\": ");
    put(pattern.before);
    writer.put(", \"layer\": ");
    put(pattern.layer);
    writer.put(", \"after\": ");
    put(pattern.after);
    writer.put('}');
  }

  void put(const std::vector<PatternNode> &places) {
    writer.list(places, [&](const PatternNode &node) {
      field("[", node.part.value);
      field(",", node.name);
      field(",", node.last);
      writer.put(']');
    });
  }

  Writer &writer;
  const NodeGraphs &nodes;
};

} // namespace

void ppcc::putNodes(Writer &writer, const Program &program) {
  NodesWriter(writer, program.nodes()).put();
}
