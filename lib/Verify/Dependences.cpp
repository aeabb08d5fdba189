// Checks that no rank waits for itself along the data, and explains the
// shortest circle of waits where one does.
#include "ppcc/Analysis/Dependences.h"
#include "Report.h"
#include "ppcc/Analysis/WaitCycle.h"
#include "ppcc/Verify/Passes.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <queue>

using namespace ppcc;

namespace {

/// A rank that cannot go on: its row `blocked` needs the row `needed` of `on`.
struct RankWait {
  RankId rank;
  ActionId blocked;
  RankId on;
  ActionId needed;
};

/// Runs all ranks together, each as far as its data allows (Kahn's algorithm
/// over the groups).
class Simulation {
public:
  Simulation(const Program &program, const ProgramIndex &index)
      : program(program), index(index), done(program.size()),
        waiters(program.ranksBegun()) {
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank)
      next.push_back(program.begin(RankId(rank)));
  }

  /// What the ranks wait for that did not reach their end.
  std::vector<RankWait> run() {
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
      ready.push_back(RankId(rank));
      while (!ready.empty())
        runRank(ready.pop_back_val());
    }
    std::vector<RankWait> waits;
    for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank)
      addWaits(RankId(rank), waits);
    return waits;
  }

private:
  /// A rank that goes on once a row of another is done.
  struct Waiter {
    ActionId row;
    RankId rank;
    bool operator>(const Waiter &other) const { return row > other.row; }
  };
  using Waiters =
      std::priority_queue<Waiter, std::vector<Waiter>, std::greater<>>;

  std::optional<ActionId> firstUnmet(ActionId group, ActionId groupEnd) const {
    std::optional<ActionId> unmet;
    for (ActionId id = group; id != groupEnd && !unmet; ++id.value)
      forEachDependence(program, index, id, [&](ActionId needed) {
        if (!done.test(needed.value))
          unmet = needed;
      });
    return unmet;
  }

  void runRank(RankId rank) {
    ActionId &position = next[rank.value];
    ActionId end = program.end(rank);
    while (position != end) {
      ActionId groupEnd = program.groupEnd(position, rank);
      if (auto unmet = firstUnmet(position, groupEnd)) {
        waiters[program.rankOf(*unmet).value].push({*unmet, rank});
        break;
      }
      if (groupEnd.value == position.value + 1)
        done.set(position.value);
      else
        done.set(position.value, groupEnd.value);
      position = groupEnd;
    }
    Waiters &waiting = waiters[rank.value];
    for (; !waiting.empty() && waiting.top().row < position; waiting.pop())
      ready.push_back(waiting.top().rank);
  }

  void addWaits(RankId rank, std::vector<RankWait> &waits) const {
    ActionId position = next[rank.value];
    if (position == program.end(rank))
      return;
    ActionId groupEnd = program.groupEnd(position, rank);
    for (ActionId id = position; id != groupEnd; ++id.value)
      forEachDependence(program, index, id, [&](ActionId needed) {
        if (!done.test(needed.value))
          waits.push_back({rank, id, program.rankOf(needed), needed});
      });
  }

  const Program &program;
  const ProgramIndex &index;
  llvm::BitVector done; ///< By row.
  std::vector<Waiters> waiters;
  std::vector<ActionId> next; ///< Of each rank, the first row that is not done.
  llvm::SmallVector<RankId> ready;
};

/// Tells the user of a circle.
class Explanation {
public:
  Explanation(const Program &program, PassContext &context,
              llvm::ArrayRef<RankWait> circle)
      : program(program), context(context), circle(circle) {}

  void report() {
    ActionId first = circle[0].blocked;
    if (circle.size() == 1) {
      reportAt<diag::RankWaitsForItself>(program, context, first,
                                         circle[0].rank.value)
          .note(place(first), "rank {} runs {}, which needs `{}`",
                circle[0].rank.value, withPhase(first),
                cell(program, circle[0].needed))
          .note(place(circle[0].needed), "rank {} runs {} {}",
                circle[0].rank.value, withPhase(circle[0].needed),
                inOneGroup(program, first, circle[0].needed)
                    ? "in the same group"
                    : "only after that");
      return;
    }
    auto builder = reportAt<diag::RanksWaitInCircle>(program, context, first,
                                                     rankList(ranks()));
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
  Place place(ActionId row) const {
    return placeOf(program, row, context.sources);
  }

  std::string withPhase(ActionId row) const {
    const std::string &phase = program.phases[program[row].phase.value];
    return fmt::format("`{}`{}", cell(program, row),
                       phase.empty() ? "" : " (phase " + phase + ")");
  }

  /// Where `needed` stands, seen from `blocked` on the same rank.
  std::string behind(ActionId needed, ActionId blocked) const {
    if (needed == blocked)
      return "";
    bool together = inOneGroup(program, std::min(needed, blocked),
                               std::max(needed, blocked));
    return fmt::format(" {} `{}`", together ? "together with" : "after",
                       cell(program, blocked));
  }

  /// Rank i runs what rank i - 1 needs only after `blocked`, which needs
  /// something of rank i + 1.
  void addHop(DiagnosticEngine::Builder &builder, size_t i) const {
    const RankWait &wait = circle[i];
    std::string what = withPhase(wait.blocked);
    if (i != 0) {
      ActionId awaited = circle[i - 1].needed;
      if (awaited != wait.blocked)
        what = fmt::format("`{}`{}", cell(program, awaited),
                           behind(awaited, wait.blocked)) +
               withPhase(wait.blocked)
                   .substr(cell(program, wait.blocked).size() + 2);
    }
    builder.note(
        place(wait.blocked), "rank {} runs {}, which needs `{}` from rank {}",
        wait.rank.value, what, cell(program, wait.needed), wait.on.value);
  }

  std::vector<RankId> ranks() const {
    std::vector<RankId> ranks;
    for (const RankWait &wait : circle)
      ranks.push_back(wait.rank);
    return ranks;
  }

  const Program &program;
  PassContext &context;
  llvm::ArrayRef<RankWait> circle;
};

/// The shortest circle of `waits`, which are sorted by rank.
std::vector<RankWait> shortestCircle(llvm::ArrayRef<RankWait> waits) {
  std::vector<Wait> edges;
  for (const RankWait &wait : waits)
    edges.push_back({wait.rank.value, wait.on.value});
  std::vector<RankWait> circle;
  for (uint32_t edge : shortestCircle(edges))
    circle.push_back(waits[edge]);
  return circle;
}

class Dependences final : public CheckPass {
public:
  void check(const Program &program, PassContext &context) const override {
    const ProgramIndex *index = indexOf(program, context);
    if (!index)
      return;
    std::vector<RankWait> circle =
        shortestCircle(Simulation(program, *index).run());
    if (!circle.empty())
      Explanation(program, context, circle).report();
  }
};

} // namespace

PassFactory ppcc::verifyDependences() { return passFactory<Dependences>(); }
