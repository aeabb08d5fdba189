// Writes one line a rank, the nodes of each action or group in a brace.
#include "Cells.h"
#include "Emitters.h"
#include "ppcc/Analysis/Cost/NodeOrders.h"
#include "ppcc/Basic/Diagnostics/Emit.h"
#include "ppcc/IR/Location.h"

using namespace ppcc;

namespace {

struct NodesEmitter {
  /// The words around the numbers of a node: `comm:`0`W`3`.L1.mlp`.
  struct Words {
    StringRef part;
    std::string lane, path;
    std::optional<KindClass> hook; ///< The messages that stand in its place.
  };

  const Program &program;
  raw_ostream &out;
  EmitContext &context;
  bool withMessages;
  NodeOrders orders{program};
  Writer writer{out};
  char before = ' '; ///< What the next node of a brace stands after.
  std::vector<std::vector<Words>> words = {}; ///< By graph and node.

  void emit() {
    if (!check())
      return;
    describeNodes();
    putRanks(writer, program, context.options.print, [&](RankId) {
      return [&](RowRange rows) {
        if (program.kindOf(rows.from).isCompute())
          item(rows);
      };
    });
  }

  /// Whether every action has a graph; reports one that has none.
  bool check() {
    for (ActionId row : program.rows()) {
      Action action = program[row];
      if (!program.kindOf(action).isCompute() ||
          orders.graphOf(action) != GraphUse::none)
        continue;
      return context.diags.report<diag::NoNodeGraph>(
          locationOf(program, row, context.sources), action.stage.value,
          program.kindOf(action).mnemonic);
    }
    return true;
  }

  void describeNodes() {
    const NodeGraphs &tables = program.nodes();
    for (const NodeGraph &graph : tables.graphs) {
      std::vector<Words> &list = words.emplace_back();
      for (const GraphNode &node : graph.nodes)
        list.push_back({program.kinds()[node.part].mnemonic,
                        printable(tables.lanes[node.lane]),
                        "." + printable(tables.pathOf(node)),
                        hookOf(graph, node)});
    }
  }

  std::optional<KindClass> hookOf(const NodeGraph &graph,
                                  const GraphNode &node) const {
    if (program.nodes().isHook(graph, node, hook::recv))
      return KindClass::Recv;
    if (program.nodes().isHook(graph, node, hook::send))
      return KindClass::Send;
    return std::nullopt;
  }

  void item(RowRange rows) {
    before = '{';
    writer.put(' ');
    for (const NodeOrder::ScheduledNode &place :
         orders.of(program, rows.from, rows.to)->scheduled) {
      Action action = program[ActionId(rows.from.value + place.member)];
      const Words &node = words[orders.graphOf(action)][place.node];
      if (!node.hook)
        writer.put(std::exchange(before, ' '), node.lane, ':', action.stage,
                   node.part, action.microbatch, node.path);
      else if (withMessages)
        messages(action, *node.hook, node.lane);
    }
    writer.put(before == '{' ? "{}" : "}");
  }

  /// The receives, or the sends, of an action.
  void messages(const Action &action, KindClass kindClass, StringRef lane) {
    const Pipe &pipe = program.pipe(action.pipe);
    for (uint8_t slotBit :
         slotsIn(program.kindOf(action).defines & slot::crossStage)) {
      Action message = action;
      message.kind = *program.kinds().find(kindClass, slotBit);
      for (StageId peer : kindClass == KindClass::Recv
                              ? sourcesOf(pipe, action.stage, slotBit)
                              : readersOf(pipe, action.stage, slotBit)) {
        if (pipe.rankOfStage[peer.value] ==
            pipe.rankOfStage[action.stage.value])
          continue;
        message.peer = peer;
        writer.put(std::exchange(before, ' '), lane, ':');
        writer.cell(program, message);
      }
    }
  }
};

} // namespace

void ppcc::emitNodes(const Program &program, raw_ostream &out,
                     EmitContext &context) {
  NodesEmitter{program, out, context, /*withMessages=*/false}.emit();
}

void ppcc::emitNodesComm(const Program &program, raw_ostream &out,
                         EmitContext &context) {
  NodesEmitter{program, out, context, /*withMessages=*/true}.emit();
}
