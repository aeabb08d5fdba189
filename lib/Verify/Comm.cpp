// Checks that each edge between ranks has one send and one receive a
// microbatch, in place.
#include "ProgramCheck.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

/// Programs without any communication pass: it is injected later.
class CommChecker : IndexedCheck {
public:
  CommChecker(const Program &program, PassContext &context)
      : IndexedCheck(program, context), groups(Analyses(program).groups()) {
    for (ActionId i : program.rows())
      rows += !program.kindOf(i).isCompute();
    for (PipeId pipe : program.pipeIds())
      for (uint8_t slotBit : {slot::Output, slot::InputGrad})
        if (slotBit == slot::Output || program.hasBackward())
          addEdges(pipe, slotBit);
  }

  void check() {
    if (rows == 0)
      return;
    if (needed > rows)
      return context.diags.refuse<diag::TooFewMessages>(
          Location(program.name()), rows, 2 * needed);
    const MessageIndex &messages = Analyses(program).messages();
    assert(messages.size() == needed && "both count the edges between ranks");
    if (!messages.isWhole())
      for (ActionId row : program.rows())
        if (!isSaturated() && !program.kindOf(row).isCompute())
          checkRow(row, messages);
    for (const Edge &edge : edges)
      checkEdge(edge, messages);
  }

private:
  enum End { SendEnd, RecvEnd };

  void addEdges(PipeId pipe, uint8_t slotBit) {
    const Pipe &info = program.pipe(pipe);
    for (uint32_t stage = 0; stage != info.numStages(); ++stage)
      for (StageId reader : index.readersOf(pipe, StageId(stage), slotBit))
        if (info.rankOfStage[stage] != info.rankOfStage[reader.value]) {
          edges.push_back({pipe, StageId(stage), reader, slotBit});
          needed += info.numMicrobatches;
        }
  }

  static std::optional<ActionId> endOf(const MessageIndex &messages,
                                       Message message, End end) {
    return end == SendEnd ? messages.send(message) : messages.recv(message);
  }

  /// Reports a send or receive that is not needed.
  void checkRow(ActionId row, const MessageIndex &messages) {
    Action action = program[row];
    auto message = messages.of(action);
    if (!message)
      return reportStray(row, action);
    ActionId first = *endOf(messages, *message,
                            program.kindOf(row).isSend() ? SendEnd : RecvEnd);
    if (first != row)
      report<diag::MessageTwice>(row, cell(action))
          .note(place(first), "the first is here");
  }

  /// Reports a send or receive that no edge between ranks asks for.
  void reportStray(ActionId row, const Action &action) {
    auto [from, to] = program.endpointsOf(action);
    const Pipe &pipe = program.pipe(action.pipe);
    uint8_t slotBit = program.kindOf(action).mainSlot();
    if (action.hasPeer() &&
        llvm::is_contained(index.readersOf(action.pipe, from, slotBit), to) &&
        pipe.rankOfStage[from.value] == pipe.rankOfStage[to.value])
      report<diag::MessageWithinRank>(row, cell(action),
                                      pipe.rankOfStage[from.value].value);
    else
      report<diag::MessageWithoutEdge>(row, cell(action), from.value, to.value);
  }

  void checkEdge(const Edge &edge, const MessageIndex &messages) {
    const Pipe &pipe = program.pipe(edge.pipe);
    Message first = *messages.find(edge.pipe, edge.from, edge.to,
                                   pipe.firstMicrobatch, edge.slotBit);
    auto endAt = [&](End end, uint32_t mb) {
      uint32_t number = first.number + (mb - pipe.firstMicrobatch);
      return endOf(messages, {number, first.channel}, end);
    };
    for (End end : {SendEnd, RecvEnd}) {
      StageId stage = end == SendEnd ? edge.from : edge.to;
      for (uint32_t mb = pipe.firstMicrobatch;
           mb != pipe.endMicrobatch() && !isSaturated(); ++mb) {
        auto compute = index.definer(edge.pipe, stage, mb, edge.slotBit);
        if (!compute)
          continue;
        auto found = endAt(end, mb);
        if (!found) {
          uint32_t firstMissing = mb;
          while (mb + 1 != pipe.endMicrobatch() && !endAt(end, mb + 1))
            ++mb;
          reportMissing(edge, end, firstMissing, mb, *compute);
          continue;
        }
        ActionId row = *found;
        bool inOrder = end == SendEnd ? *compute < row : row < *compute;
        if (inOrder && groups[row].from != groups[*compute].from)
          continue;
        auto builder =
            end == SendEnd
                ? report<diag::SendBeforeProducer>(row, cell(row),
                                                   cell(*compute))
                : report<diag::ReceiveAfterUse>(row, cell(row), cell(*compute));
        builder.note(place(*compute), "`{}` is here", cell(*compute));
      }
    }
  }

  void reportMissing(const Edge &edge, End end, uint32_t first, uint32_t last,
                     ActionId compute) {
    auto kindId = program.kinds().find(
        end == SendEnd ? KindClass::Send : KindClass::Recv, edge.slotBit);
    assert(kindId && "every slot that moves has its messages");
    auto [stage, peer] = end == SendEnd ? std::pair(edge.from, edge.to)
                                        : std::pair(edge.to, edge.from);
    Action action{*kindId, edge.pipe, stage, first, peer};
    std::string what = fmt::format("`{}`", cell(action));
    action.microbatch = last;
    if (first != last)
      what += fmt::format(" to `{}`", cell(action));
    RankId reader = program.rankOfStage(edge.pipe, edge.to);
    std::string needer = end == SendEnd ? fmt::format("rank {}", reader.value)
                                        : fmt::format("`{}`", cell(compute));
    report<diag::MessageMissing>(
        compute, what + (first == last ? " is" : " are"), needer,
        end == SendEnd  ? "the data"
        : first == last ? "it"
                        : "them");
  }

  const GroupIndex &groups;
  uint64_t rows = 0;   ///< Sends and receives in the program.
  uint64_t needed = 0; ///< Messages that the edges between ranks need.
  std::vector<Edge> edges;
};

} // namespace

void ppcc::verifyComm(const Program &program, PassContext &context) {
  checkIndexed<CommChecker>(program, context);
}
