// Checks that no rank waits for itself on a transport, and explains the
// shortest circle of waits where one does.
#include "ppcc/IR/Transport.h"
#include "Circle.h"
#include "Matching.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

/// Tells the user of a circle of blocked actions.
class TransportCircle : CircleTeller {
public:
  TransportCircle(const Program &program, PassContext &context,
                  EventGraph &graph, const Transport &transport)
      : CircleTeller(program, context, graph), transport(transport) {}

  void tell() const {
    auto builder = headline();
    forEachHop(builder, "actions", [&](size_t i) { addHop(builder, i); });
    ActionId last = circle.back().need.row;
    std::string how = relation(last, circle[0].blocked);
    if (!how.empty())
      builder.note(place(last), "on rank {}, `{}` {} `{}`", rankOf(last),
                   cell(last), how, cell(circle[0].blocked));
  }

private:
  DiagnosticEngine::Builder headline() const {
    std::vector<RankId> ranks = this->ranks();
    if (ranks.size() == 1)
      return report<diag::RankBlocksItself>(circle[0].blocked, transport.name,
                                            ranks[0].value);
    return report<diag::RanksBlockEachOther>(circle[0].blocked, transport.name,
                                             rankList(ranks));
  }

  /// How `row` comes to wait with `blocked`, at the head of its queue.
  std::string relation(ActionId row, ActionId blocked) const {
    if (row == blocked)
      return "";
    return areTogether(row, blocked) ? "runs together with"
                                     : "is queued behind";
  }

  /// What the first waited-for action waits for itself.
  void addHop(DiagnosticEngine::Builder &builder, size_t i) const {
    const EventGraph::Block &block = circle[i];
    std::string what = withPhase(block.blocked);
    ActionId awaited = circle[i == 0 ? 0 : i - 1].need.row;
    std::string how = i == 0 ? "" : relation(awaited, block.blocked);
    if (how.empty())
      builder.note(place(block.blocked), "on rank {}, {} {}",
                   rankOf(block.blocked), what, reason(block.need));
    else
      builder.note(place(block.blocked), "on rank {}, `{}` {} {}, which {}",
                   rankOf(block.blocked), cell(awaited), how, what,
                   reason(block.need));
  }

  std::string reason(Need need) const {
    std::string what = cell(need.row);
    switch (need.kind) {
    case NeedKind::Queue:
      return fmt::format("is queued behind `{}`", what);
    case NeedKind::Issue:
      return fmt::format("is issued after `{}`", what);
    case NeedKind::Data:
      return fmt::format("needs `{}`", what);
    case NeedKind::Start:
      return fmt::format("waits until rank {} starts `{}`", rankOf(need.row),
                         what);
    case NeedKind::Room:
      return fmt::format("waits for the room that rank {} makes with `{}`",
                         rankOf(need.row), what);
    }
    return "";
  }

  const Transport &transport;
};

void reportLack(const Program &program, EventGraph::Lack lack,
                PassContext &context) {
  Action action = program[lack.row];
  reportAt<diag::NoMessageFor>(
      program, context, lack.row, cell(program, action),
      lack.slotBit == slot::Output ? "output" : "gradient", lack.source.value,
      program.rankOfStage(action.pipe, lack.source).value);
}

/// Whether the program ends on a transport; else a report.
bool isSafe(const Program &program, const MessageIndex &messages,
            const Transport &transport, PassContext &context) {
  EventGraph graph(program, Analyses(program).index(), &messages, {&transport});
  bool isDone = graph.run();
  if (auto lack = graph.lack()) {
    reportLack(program, *lack, context);
    return false;
  }
  if (!isDone)
    TransportCircle(program, context, graph, transport).tell();
  return isDone;
}

const PassOption<std::vector<Transport>> transportOptions[] = {
    {{"transport", transportNameList(),
      "what the program runs on; several with + between them"},
     [](std::vector<Transport> &transports, StringRef value) {
       return findTransports(value, transports);
     }},
};

} // namespace

Pass ppcc::verifyTransport(std::vector<Transport> transports) {
  return checkPass([=](const Program &program, PassContext &context) {
    const MessageIndex *messages = messagesOf(program, context);
    if (!messages || !checkPairs(program, *messages, context))
      return;
    bool inOrder = firstMismatches(program, *messages).empty();
    for (const Transport &transport : transports)
      if (isSafe(program, *messages, transport, context) && inOrder)
        context.proven.push_back(transport.name);
  });
}

PassFactory ppcc::verifyTransport() {
  return passFactory<std::vector<Transport>>(
      transportOptions, {*findTransport("stream")}, verifyTransport);
}
