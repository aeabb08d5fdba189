// Between which ranks a program sends, in which direction.
#pragma once

#include "ppcc/Runtime/Program.h"
#include "ppcc/Runtime/Rows.h"

#include <algorithm>
#include <compare>
#include <set>
#include <vector>

namespace ppcc::rt {

/// One direction between two ranks; what actions move has edges of its own.
struct RankEdge {
  uint32_t from, to;
  bool isMove;

  auto operator<=>(const RankEdge &) const = default;
};

/// O(stages + skip edges); O(rows) where actions move something.
inline std::set<RankEdge> edgesOf(const Program &program) {
  std::set<RankEdge> edges;
  auto add = [&](uint32_t from, uint32_t to, bool isMove) {
    if (from != to)
      edges.insert({from, to, isMove});
  };
  auto addBoth = [&](const Pipe &pipe, uint32_t from, uint32_t to) {
    add(pipe.rankOfStage[from], pipe.rankOfStage[to], false);
    if (program.hasBackward)
      add(pipe.rankOfStage[to], pipe.rankOfStage[from], false);
  };
  for (const Pipe &pipe : program.pipes) {
    for (uint32_t stage = 0; stage + 1 < pipe.numStages(); ++stage)
      if (pipe.hasEdgeToNext(stage))
        addBoth(pipe, stage, stage + 1);
    for (SkipEdge edge : pipe.skipEdges)
      addBoth(pipe, edge.from, edge.to);
  }
  if (std::ranges::any_of(program.kinds, &Kind::isMove))
    for (const RankProgram &list : program.ranks)
      for (uint64_t i = 0; i != list.numRows(); ++i) {
        Row row = list.row(i);
        const Kind &kind = program.kinds[row.kind];
        if (!kind.isMove())
          continue;
        const Pipe &pipe = program.pipes[row.pipe];
        uint32_t near = pipe.rankOfStage[row.stage],
                 far = pipe.rankOfStage[row.peer];
        if (kind.collective == Collective::To)
          add(near, far, true);
        else
          add(far, near, true);
      }
  return edges;
}

/// The pairs of ranks of some edges in rounds, in each of which a rank stands
/// once at most: what pairs do together round by round never waits in a cycle.
/// At most twice as many rounds as a rank has partners.
inline std::vector<std::vector<RankPair>>
edgeColoring(const std::set<RankEdge> &edges) {
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  for (const RankEdge &edge : edges)
    pairs.insert(std::minmax(edge.from, edge.to));
  std::vector<std::vector<RankPair>> rounds;
  std::vector<std::set<uint32_t>> busy;
  for (auto [first, second] : pairs) {
    size_t round = 0;
    while (round != rounds.size() &&
           (busy[round].contains(first) || busy[round].contains(second)))
      ++round;
    if (round == rounds.size())
      rounds.emplace_back(), busy.emplace_back();
    rounds[round].push_back({first, second});
    busy[round].insert({first, second});
  }
  return rounds;
}

} // namespace ppcc::rt
