// What the checks that report cycles of waits share.
#pragma once

#include "ProgramCheck.h"
#include "ppcc/Analysis/Run/EventGraph.h"

namespace ppcc {

/// Reports the shortest cycle of waits that blocks a program.
class CycleReporter : protected ProgramCheck {
public:
  /// `graph` has run, and not to completion.
  CycleReporter(const Program &program, PassContext &context, EventGraph &graph)
      : ProgramCheck{program, context}, graph(graph),
        cycle(graph.shortestCycle()) {}

protected:
  uint32_t rankOf(ActionId row) const { return program.rankOf(row).value; }
  bool areTogether(ActionId a, ActionId b) const {
    return graph.unitOf(a) == graph.unitOf(b);
  }
  /// The ranks of the cycle, each once.
  std::vector<RankId> ranks() const {
    std::vector<RankId> ranks;
    DenseSet<uint32_t> seen;
    for (const EventGraph::BlockedAction &block : cycle)
      if (seen.insert(rankOf(block.blocked)).second)
        ranks.push_back(program.rankOf(block.blocked));
    return ranks;
  }
  /// Calls `add(i)`, which adds a note, for each member of the cycle; for the
  /// last one, after a note about `things`, when there are very many.
  template <class Add>
  void forEachWait(DiagnosticEngine::Builder &builder, StringRef things,
                   Add add) const {
    for (size_t i = 0; i != cycle.size(); ++i) {
      if (cycle.size() > maxHops && i == maxHops - 1) {
        builder.note({}, "and so on over {} more {}", cycle.size() - maxHops,
                     things);
        i = cycle.size() - 1;
      }
      add(i);
    }
  }

  const EventGraph &graph;
  std::vector<EventGraph::BlockedAction> cycle;
};

} // namespace ppcc
