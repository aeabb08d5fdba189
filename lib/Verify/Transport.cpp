// Checks that a program cannot deadlock on a transport; where it can, reports a
// message that is missing, or a shortest cycle of the wait-for graph.
//
// Algorithm: EventGraph runs all ranks until nothing can proceed. What a
// transport matches and buffers does not depend on timing, so one run decides:
// either all actions complete, or the same ones block in every run.
// A transport counts as proven only if, besides, sends and receives between two
// ranks are posted in the same order, as networks match them.
// Cost: linear in the actions of all ranks, per transport.
// Example, on `rendezvous`: rank 0 posts 0SEND_F1, then 0RECV_B0, rank 1 posts
// 1SEND_B0, then 1RECV_F1. Each send waits until the peer starts its receive,
// and each receive is queued behind a send: a cycle of four waits.
#include "CycleReporter.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

/// Reports a cycle of blocked actions.
class TransportCycleReporter : CycleReporter {
public:
  TransportCycleReporter(const Program &program, PassContext &context,
                         EventGraph &graph, const Transport &transport)
      : CycleReporter(program, context, graph), transport(transport) {}

  void reportCycle() const {
    auto builder = headline();
    forEachWait(builder, "actions", [&](size_t i) { noteWait(builder, i); });
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

  /// Why `row` cannot start before `blocked` of the same rank does; nothing
  /// when they are the same action.
  std::string relation(ActionId row, ActionId blocked) const {
    if (row == blocked)
      return "";
    return areTogether(row, blocked) ? "is in one group with"
                                     : "is queued behind";
  }

  /// Notes edge i of the cycle: what its blocked action waits for, and, but for
  /// the first edge, why that blocks the action that edge i - 1 waits for.
  void noteWait(DiagnosticEngine::Builder &builder, size_t i) const {
    const EventGraph::BlockedAction &block = cycle[i];
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
      return fmt::format("waits until rank {} frees buffer space with `{}`",
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

/// Returns whether the program runs to completion on a transport, and reports
/// why where it does not.
bool checkDeadlockFree(const Program &program, const MessageIndex &messages,
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

} // namespace

Pass ppcc::verifyTransport(std::vector<Transport> transports) {
  return checkPass([=](const Program &program, PassContext &context) {
    const MessageIndex *messages = messagesOf(program, context);
    if (!messages || !checkPairs(program, *messages, context))
      return;
    bool isPostedInOrder = firstMismatches(program, *messages).empty();
    for (const Transport &transport : transports)
      if (checkDeadlockFree(program, *messages, transport, context) &&
          isPostedInOrder)
        context.proven.push_back(transport.name);
  });
}
