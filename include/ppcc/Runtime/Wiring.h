// Which values go where on one rank: each is known by the edge that it travels
// along.
#pragma once

#include "ppcc/Runtime/Error.h"

#include <algorithm>
#include <vector>

namespace ppcc::rt {

/// One end of an edge, as a stage sees it.
struct EdgeEnd {
  uint16_t stage; ///< The stage at the other end.
  uint32_t rank;  ///< The rank of that stage.
  uint32_t value; ///< The number of the value on this rank.
};

/// The values that a stage reads and makes.
struct StageWiring {
  uint32_t output = 0;         ///< The number of its output.
  uint32_t activation = 0;     ///< The number of what F keeps for the backward.
  std::vector<EdgeEnd> inputs; ///< Outputs of others, by stage.
  std::vector<EdgeEnd> outputGrads; ///< What the readers of its output give.
  std::vector<EdgeEnd> inputGrads;  ///< What it gives to those it reads.

  /// The end at `stage`, or null.
  static const EdgeEnd *find(const std::vector<EdgeEnd> &ends, uint16_t stage) {
    for (const EdgeEnd &end : ends)
      if (end.stage == stage)
        return &end;
    return nullptr;
  }
  /// The edge of a message: those of outputs go to or come from `peer` by the
  /// class, gradients the other way. Null when there is none.
  const EdgeEnd *ofMessage(const Kind &kind, uint16_t peer) const {
    bool sends = kind.kindClass == KindClass::Send;
    if (kind.defines & slot::Output)
      return find(sends ? outputGrads : inputs, peer);
    return find(sends ? inputGrads : outputGrads, peer);
  }
};

/// The stages of one rank. Built in O(stages + skip edges).
class Wiring {
public:
  Wiring(const Program &program, uint32_t rank) {
    for (const Pipe &pipe : program.pipes)
      addPipe(pipe, rank);
  }

  /// A stage that this rank hosts, or null.
  const StageWiring *find(uint8_t pipe, uint16_t stage) const {
    int32_t index = indexOfStage[pipe][stage];
    return index < 0 ? nullptr : &stages[static_cast<size_t>(index)];
  }

private:
  /// The stages at the other ends of the edges that lead into `stage`, or out
  /// of it; ascending.
  struct Neighbours {
    std::vector<std::vector<uint16_t>> sources, readers;

    explicit Neighbours(const Pipe &pipe)
        : sources(pipe.numStages()), readers(pipe.numStages()) {
      for (uint32_t stage = 0; stage + 1 < pipe.numStages(); ++stage)
        add(static_cast<uint16_t>(stage), static_cast<uint16_t>(stage + 1));
      for (SkipEdge edge : pipe.skipEdges)
        add(edge.from, edge.to);
      for (auto *lists : {&sources, &readers})
        for (std::vector<uint16_t> &list : *lists)
          std::sort(list.begin(), list.end());
    }
    void add(uint16_t from, uint16_t to) {
      sources[to].push_back(from);
      readers[from].push_back(to);
    }
  };

  void addPipe(const Pipe &pipe, uint32_t rank) {
    Neighbours neighbours(pipe);
    std::vector<int32_t> &index =
        indexOfStage.emplace_back(pipe.numStages(), -1);
    size_t first = stages.size();
    std::vector<uint16_t> hosted;
    for (uint32_t stage = 0; stage != pipe.numStages(); ++stage) {
      if (pipe.rankOfStage[stage] != rank)
        continue;
      index[stage] = static_cast<int32_t>(stages.size());
      hosted.push_back(static_cast<uint16_t>(stage));
      StageWiring &wiring = stages.emplace_back();
      wiring.output = nextValue++;
      wiring.activation = nextValue++;
      for (uint16_t source : neighbours.sources[stage])
        wiring.inputGrads.push_back(
            {source, pipe.rankOfStage[source], nextValue++});
    }
    // A value made here is read under its maker's number, one that arrives gets
    // a number of its own.
    for (size_t i = 0; i != hosted.size(); ++i) {
      StageWiring &wiring = stages[first + i];
      for (uint16_t source : neighbours.sources[hosted[i]])
        wiring.inputs.push_back(
            {source, pipe.rankOfStage[source],
             index[source] < 0
                 ? nextValue++
                 : stages[static_cast<size_t>(index[source])].output});
      for (uint16_t reader : neighbours.readers[hosted[i]])
        wiring.outputGrads.push_back(
            {reader, pipe.rankOfStage[reader],
             index[reader] < 0
                 ? nextValue++
                 : StageWiring::find(
                       stages[static_cast<size_t>(index[reader])].inputGrads,
                       hosted[i])
                       ->value});
    }
  }

  std::vector<std::vector<int32_t>> indexOfStage; ///< By pipe; -1: elsewhere.
  std::vector<StageWiring> stages;
  uint32_t nextValue = 0;
};

} // namespace ppcc::rt
