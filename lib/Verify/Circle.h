// What the checks share that tell of circles of waits.
#pragma once

#include "Report.h"
#include "ppcc/Analysis/EventGraph.h"
#include "ppcc/Analysis/WaitCycle.h"

namespace ppcc {

/// Tells the user of the shortest circle of what blocks a program.
class CircleTeller : protected Judge {
public:
  /// `graph` has run, and did not come to its end.
  CircleTeller(const Program &program, PassContext &context, EventGraph &graph)
      : Judge(program, context), graph(graph), circle(graph.shortestCircle()) {}

protected:
  uint32_t rankOf(ActionId row) const { return program.rankOf(row).value; }
  bool areTogether(ActionId a, ActionId b) const {
    return graph.unitOf(a) == graph.unitOf(b);
  }
  /// The ranks of the circle, each once.
  std::vector<RankId> ranks() const {
    std::vector<RankId> ranks;
    DenseSet<uint32_t> seen;
    for (const EventGraph::Block &block : circle)
      if (seen.insert(rankOf(block.blocked)).second)
        ranks.push_back(program.rankOf(block.blocked));
    return ranks;
  }
  /// Calls `add(i)`, which adds a note, for each member of the circle; for the
  /// last one, after a note about `things`, when there are very many.
  template <class Add>
  void forEachHop(DiagnosticEngine::Builder &builder, StringRef things,
                  Add add) const {
    for (size_t i = 0; i != circle.size(); ++i) {
      if (circle.size() > maxHops && i == maxHops - 1) {
        builder.note({}, "and so on over {} more {}", circle.size() - maxHops,
                     things);
        i = circle.size() - 1;
      }
      add(i);
    }
  }

  const EventGraph &graph;
  std::vector<EventGraph::Block> circle;
};

} // namespace ppcc
