// Checks that no rank waits for itself on a transport, and explains the
// shortest circle of waits where one does.
#include "ppcc/IR/Transport.h"
#include "Matching.h"
#include "Report.h"
#include "ppcc/Analysis/Dependences.h"
#include "ppcc/Analysis/EventGraph.h"
#include "ppcc/Analysis/WaitCycle.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

using Block = EventGraph::Block;

/// Tells the user of a circle of blocked actions.
class TransportCircle : Judge {
public:
  TransportCircle(const Program &program, PassContext &context,
                  const EventGraph &graph, const Transport &transport,
                  ArrayRef<Block> circle)
      : Judge(program, context), graph(graph), transport(transport),
        circle(circle) {}

  void tell() const {
    auto builder = headline();
    for (size_t i = 0; i != circle.size(); ++i) {
      if (circle.size() > maxHops && i == maxHops - 1) {
        builder.note({}, "and so on over {} more actions",
                     circle.size() - maxHops);
        i = circle.size() - 1;
      }
      addHop(builder, i);
    }
    ActionId last = circle.back().need.row;
    std::string how = relation(last, circle[0].blocked);
    if (!how.empty())
      builder.note(place(last), "on rank {}, `{}` {} `{}`", rankOf(last),
                   cell(last), how, cell(circle[0].blocked));
  }

private:
  uint32_t rankOf(ActionId row) const { return program.rankOf(row).value; }

  DiagnosticEngine::Builder headline() const {
    std::vector<RankId> ranks;
    DenseSet<uint32_t> seen;
    for (const Block &block : circle)
      if (RankId rank = program.rankOf(block.blocked);
          seen.insert(rank.value).second)
        ranks.push_back(rank);
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
    return graph.unitOf(row) == graph.unitOf(blocked) ? "runs together with"
                                                      : "is queued behind";
  }

  /// What the first waited-for action waits for itself.
  void addHop(DiagnosticEngine::Builder &builder, size_t i) const {
    const Block &block = circle[i];
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

  const EventGraph &graph;
  const Transport &transport;
  ArrayRef<Block> circle;
};

struct TransportOptions {
  std::vector<Transport> transports{*findTransport("stream")};
};

class VerifyTransport final : public CheckPass {
public:
  explicit VerifyTransport(TransportOptions options)
      : options(std::move(options)) {}

  void check(const Program &program, PassContext &context) const override {
    const MessageIndex *messages = messagesOf(program, context);
    if (!messages || !checkPairs(program, *messages, context))
      return;
    bool inOrder = firstMismatches(program, *messages).empty();
    for (const Transport &transport : options.transports)
      if (isSafe(program, *messages, transport, context) && inOrder)
        context.proven.push_back(transport.name);
  }

private:
  static bool isSafe(const Program &program, const MessageIndex &messages,
                     const Transport &transport, PassContext &context) {
    EventGraph graph(program, Analyses(program).index(), messages, transport);
    bool done = graph.run();
    if (auto lack = graph.lack()) {
      reportLack(program, *lack, context);
      return false;
    }
    if (done)
      return true;
    std::vector<Block> circle = graph.shortestCircle();
    TransportCircle(program, context, graph, transport, circle).tell();
    return false;
  }

  static void reportLack(const Program &program, EventGraph::Lack lack,
                         PassContext &context) {
    Action action = program[lack.row];
    reportAt<diag::NoMessageFor>(
        program, context, lack.row, cell(program, action),
        lack.slotBit == slot::Output ? "output" : "gradient", lack.source.value,
        program.rankOfStage(action.pipe, lack.source).value);
  }

  TransportOptions options;
};

const PassOption<TransportOptions> transportOptions[] = {
    {{"transport", transportNameList(),
      "what the program runs on; several with + between them"},
     [](TransportOptions &options, StringRef value) {
       return findTransports(value, options.transports);
     }},
};

} // namespace

PassFactory ppcc::verifyTransport() {
  return passFactory<VerifyTransport, TransportOptions>(transportOptions);
}

std::unique_ptr<Pass> ppcc::verifyTransport(std::vector<Transport> transports) {
  return std::make_unique<VerifyTransport>(
      TransportOptions{std::move(transports)});
}
