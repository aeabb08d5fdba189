// Writes one line a rank, the nodes of each action or group in a brace.
#include "Cells.h"
#include "Emitters.h"
#include "ppcc/Analysis/NodeOrders.h"
#include "ppcc/IR/Place.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;

namespace {

class NodesEmitter {
public:
  NodesEmitter(const Program &program, llvm::raw_ostream &out,
               EmitContext &context)
      : program(program), context(context), orders(program), writer(out) {}

  /// Whether every action has a graph; reports one that has none.
  bool check() {
    for (uint32_t row = 0; row != program.size(); ++row) {
      Action action = program[ActionId(row)];
      if (!program.kinds[action.kind].isCompute() ||
          orders.graphOf(action) != GraphUse::none)
        continue;
      context.diags.report<diag::NoNodeGraph>(
          placeOf(program, ActionId(row), context.sources), action.stage.value,
          program.kinds[action.kind].letters);
      return false;
    }
    return true;
  }

  void emit() {
    describeNodes();
    const PrintOptions &print = context.options.print;
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
      if (!print.ranks.empty() &&
          !llvm::is_contained(print.ranks, RankId(rank)))
        continue;
      writer.put("rank ");
      writer.number(rank);
      writer.put(':');
      forEachItem(program, RankId(rank), [&](ActionId begin, ActionId end) {
        if (program.kindOf(begin).isCompute() &&
            (!print.microbatches ||
             holdsMicrobatch(program, begin, end, *print.microbatches)))
          item(begin, end);
      });
      writer.put('\n');
    }
  }

private:
  /// The words around the numbers of a node: `comm:`0`W`3`.L1.mlp`.
  struct Words {
    llvm::StringRef lane, part;
    std::string path;
  };

  void describeNodes() {
    const NodeGraphs &tables = program.nodes;
    for (const NodeGraph &graph : tables.graphs) {
      std::vector<Words> &list = words.emplace_back();
      for (const GraphNode &node : graph.nodes)
        list.push_back({tables.lanes[node.lane],
                        program.kinds[node.part].letters,
                        "." + tables.pathOf(node)});
    }
  }

  void item(ActionId begin, ActionId end) {
    char before = '{';
    writer.put(' ');
    for (const NodeOrder::Place &place :
         orders.of(program, begin, end)->places) {
      Action action = program[ActionId(begin.value + place.member)];
      const Words &node = words[orders.graphOf(action)][place.node];
      writer.put(before);
      writer.put(node.lane);
      writer.put(':');
      writer.number(action.stage.value);
      writer.put(node.part);
      writer.number(action.microbatch);
      writer.put(node.path);
      before = ' ';
    }
    writer.put(before == '{' ? "{}" : "}");
  }

  const Program &program;
  EmitContext &context;
  NodeOrders orders;
  Writer writer;
  std::vector<std::vector<Words>> words; ///< By graph and node.
};

} // namespace

bool ppcc::emitNodes(const Program &program, llvm::raw_ostream &out,
                     EmitContext &context) {
  NodesEmitter emitter(program, out, context);
  if (!emitter.check())
    return false;
  emitter.emit();
  return true;
}
