// Checks that no rank waits for itself on a transport, and explains the
// shortest cycle of waits where one does.
#include "ppcc/IR/Transport.h"
#include "CycleReporter.h"
#include "Matching.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

/// Tells the user of a cycle of blocked actions.
class TransportCycleReporter : CycleReporter {
public:
  TransportCycleReporter(const Program &program, PassContext &context,
                         EventGraph &graph, const Transport &transport)
      : CycleReporter(program, context, graph), transport(transport) {}

  void reportCycle() const {
    auto builder = headline();
    forEachHop(builder, "actions", [&](size_t i) { addHop(builder, i); });
    ActionId last = cycle.back().need.row;
    std::string how = relation(last, cycle[0].blocked);
    if (!how.empty())
      builder.note(place(last), "on rank {}, `{}` {} `{}`", rankOf(last),
                   cell(last), how, cell(cycle[0].blocked));
  }

private:
  DiagnosticEngine::Builder headline() const {
    std::vector<RankId> ranks = this->ranks();
    if (ranks.size() == 1)
      return report<diag::RankBlocksItself>(cycle[0].blocked, transport.name,
                                            ranks[0].value);
    return report<diag::RanksBlockEachOther>(cycle[0].blocked, transport.name,
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
    const EventGraph::Block &block = cycle[i];
    std::string what = withPhase(block.blocked);
    ActionId awaited = cycle[i == 0 ? 0 : i - 1].need.row;
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
    case NeedKind::Buffer:
      return fmt::format("waits for the room that rank {} makes with `{}`",
                         rankOf(need.row), what);
    }
    return "";
  }

  const Transport &transport;
};

void reportMissingReceive(const Program &program,
                          EventGraph::MissingDependence missing,
                          PassContext &context) {
  Action action = program[missing.row];
  reportAt<diag::NoMessageFor>(
      program, context, missing.row, cell(program, action),
      missing.slotBit == slot::Output ? "output" : "gradient",
      missing.source.value,
      program.rankOfStage(action.pipe, missing.source).value);
}

/// Whether the program ends on a transport; else a report.
bool isDeadlockFree(const Program &program, const MessageIndex &messages,
                    const Transport &transport, PassContext &context) {
  EventGraph graph(program, Analyses(program).index(), &messages, {&transport});
  bool isDone = graph.run();
  if (auto missing = graph.missingDependence()) {
    reportMissingReceive(program, *missing, context);
    return false;
  }
  if (!isDone)
    TransportCycleReporter(program, context, graph, transport).reportCycle();
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
      if (isDeadlockFree(program, *messages, transport, context) && inOrder)
        context.proven.push_back(transport.name);
  });
}

PassFactory ppcc::verifyTransport() {
  return passFactory<std::vector<Transport>>(
      transportOptions, {*findTransport("stream")}, verifyTransport);
}
