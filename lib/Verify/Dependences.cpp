// Checks that no rank waits for itself along the data, and explains the
// shortest circle of waits where one does.
#include "Report.h"
#include "ppcc/Analysis/EventGraph.h"
#include "ppcc/Analysis/WaitCycle.h"
#include "ppcc/Basic/Diagnostics/Verify.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

/// A rank that cannot go on: its row `blocked` needs the row `needed` of `on`.
struct RankWait {
  RankId rank;
  ActionId blocked;
  RankId on;
  ActionId needed;
};

/// Tells the user of a circle.
class DataCircle : Judge {
public:
  DataCircle(const Program &program, PassContext &context,
             const EventGraph &graph, ArrayRef<RankWait> circle)
      : Judge(program, context), graph(graph), circle(circle) {}

  void tell() {
    ActionId first = circle[0].blocked;
    if (circle.size() == 1) {
      report<diag::RankWaitsForItself>(first, circle[0].rank.value)
          .note(place(first), "rank {} runs {}, which needs `{}`",
                circle[0].rank.value, withPhase(first), cell(circle[0].needed))
          .note(place(circle[0].needed), "rank {} runs {} {}",
                circle[0].rank.value, withPhase(circle[0].needed),
                areTogether(first, circle[0].needed) ? "in the same group"
                                                     : "only after that");
      return;
    }
    auto builder = report<diag::RanksWaitInCircle>(first, rankList(ranks()));
    for (size_t i = 0; i != circle.size(); ++i) {
      if (circle.size() > maxHops && i == maxHops - 1) {
        builder.note({}, "and so on over {} more ranks",
                     circle.size() - maxHops);
        i = circle.size() - 1;
      }
      addHop(builder, i);
    }
    const RankWait &last = circle.back();
    if (last.needed != first)
      builder.note(place(last.needed), "rank {} runs {}{}", last.on.value,
                   withPhase(last.needed), behind(last.needed, first));
  }

private:
  bool areTogether(ActionId a, ActionId b) const {
    return graph.unitOf(a) == graph.unitOf(b);
  }

  /// Where `needed` stands, seen from `blocked` on the same rank.
  std::string behind(ActionId needed, ActionId blocked) const {
    if (needed == blocked)
      return "";
    return fmt::format(" {} `{}`",
                       areTogether(needed, blocked) ? "together with" : "after",
                       cell(blocked));
  }

  /// Rank i runs what rank i - 1 needs only after `blocked`, which needs
  /// something of rank i + 1.
  void addHop(DiagnosticEngine::Builder &builder, size_t i) const {
    const RankWait &wait = circle[i];
    std::string what = withPhase(wait.blocked);
    if (i != 0) {
      ActionId awaited = circle[i - 1].needed;
      if (awaited != wait.blocked)
        what = fmt::format("`{}`{}", cell(awaited),
                           behind(awaited, wait.blocked)) +
               withPhase(wait.blocked).substr(cell(wait.blocked).size() + 2);
    }
    builder.note(place(wait.blocked),
                 "rank {} runs {}, which needs `{}` from rank {}",
                 wait.rank.value, what, cell(wait.needed), wait.on.value);
  }

  std::vector<RankId> ranks() const {
    std::vector<RankId> ranks;
    for (const RankWait &wait : circle)
      ranks.push_back(wait.rank);
    return ranks;
  }

  const EventGraph &graph;
  ArrayRef<RankWait> circle;
};

struct DependenceChecker {
  const Program &program;
  const ProgramIndex &index;
  PassContext &context;

  void check() {
    EventGraph graph(program, index);
    if (graph.run())
      return;
    std::vector<RankWait> circle;
    for (const EventGraph::Block &block : graph.shortestCircle())
      circle.push_back({program.rankOf(block.blocked), block.blocked,
                        program.rankOf(block.need.row), block.need.row});
    DataCircle(program, context, graph, circle).tell();
  }
};

} // namespace

PassFactory ppcc::verifyDependences() {
  return passFactory<IndexedPass<DependenceChecker>>();
}
