// Checks that no more receives of an edge wait for their readers than asked
// for.
#include "ProgramCheck.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

/// Counts for each edge the items that wait for what is posted: a group that
/// reads several messages of an edge counts once, since no order could post one
/// of them later.
struct BufferChecker : ProgramCheck {
  uint32_t bound;

  void check() {
    ReceiveWalk walk(program, edges);
    for (RankId i : program.ranks()) {
      if (isSaturated())
        return;
      rank = i;
      firstReceive += receives;
      receives = 0;
      walk.run(
          rank, [&](uint32_t, ActionId) { ++receives; },
          [&](uint32_t receive, ActionId row, Message message) {
            if (enters(message.edge, buffers.waits()[receive]))
              addReader(message.edge, row);
          },
          [&](uint32_t, ActionId item, Message message) {
            readers[message.edge] -= leaves(message.edge, item);
          });
    }
  }

  bool isGroup(ActionId item) const {
    return item < program.end(rank) && program.itemOf(item).size() > 1;
  }
  /// Whether no other receive of the edge waits for the item.
  bool enters(uint32_t edge, ActionId item) {
    return !isGroup(item) || groups.insert({edge, item.value}).second;
  }
  bool leaves(uint32_t edge, ActionId item) {
    return !isGroup(item) || groups.erase({edge, item.value});
  }

  void addReader(uint32_t edge, ActionId row) {
    if (++readers[edge] <= bound || reported.test(edge))
      return;
    reported.set(edge);
    reportEarlyReceive(edge, row);
  }

  void reportEarlyReceive(uint32_t edge, ActionId row) {
    auto [first, nextItem] = outstanding(edge, row);
    auto builder = report<diag::ReceiveTooEarly>(
        row, cell(row), edges.edges()[edge].from.value, bound);
    builder.note(place(first), "`{}` is the first of them", cell(first));
    if (nextItem == program.end(rank)) {
      builder.note(place(first), "no action of rank {} reads it", rank.value);
      return;
    }
    ActionId reader = readerIn(nextItem, edge);
    builder.note(place(reader), "`{}`, the first to read one, is only here",
                 cell(reader));
  }

  /// Of the receives of the edge before `row` that are not read yet, the first,
  /// and the first item that reads one.
  std::pair<ActionId, ActionId> outstanding(uint32_t edge, ActionId row) const {
    ActionId first = row, nextItem = program.end(rank);
    uint32_t receive = firstReceive;
    for (ActionId id = program.begin(rank); id != row; ++id.value) {
      if (!program.kindOf(id).isRecv())
        continue;
      ActionId item = buffers.waits()[receive++];
      auto message = edges.of(program[id]);
      if (!message || message->edge != edge || item < row)
        continue;
      first = std::min(first, id);
      nextItem = std::min(nextItem, item);
    }
    return {first, nextItem};
  }

  /// The member of an item that reads the edge.
  ActionId readerIn(ActionId item, uint32_t edge) const {
    for (ActionId row = item, end = program.groupEnd(item, rank); row != end;
         ++row.value) {
      bool reads = false;
      edges.forEachInput(program[row], [&](Message message) {
        reads |= message.edge == edge;
      });
      if (reads)
        return row;
    }
    return item;
  }

  const ReceiveBuffers &buffers = Analyses(program).buffers();
  const EdgeIndex &edges = buffers.edges();
  RankId rank{};
  uint32_t firstReceive = 0, receives = 0; ///< Of the rank.
  std::vector<uint32_t> readers =          ///< By edge.
      std::vector<uint32_t>(edges.edges().size());
  BitVector reported{unsigned(edges.edges().size())}; ///< By edge.
  /// Edges with groups that wait for what is posted on them.
  DenseSet<std::pair<uint32_t, uint32_t>> groups{};
};

} // namespace

Pass ppcc::verifyBuffers(uint32_t prefetch) {
  return checkPass([=](const Program &program, PassContext &context) {
    if (indexOf(program, context))
      BufferChecker{{program, context}, prefetch}.check();
  });
}
