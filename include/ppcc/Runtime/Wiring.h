// Which values go where on one rank: each is known by the edge that it travels
// along. What the rank has begun and whose backward has not ended.
#pragma once

#include "ppcc/Runtime/Error.h"
#include "ppcc/Runtime/Values.h"

#include <algorithm>
#include <stdexcept>
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
  uint8_t pipe = 0;
  uint16_t number = 0;              ///< Of the pipe.
  uint32_t index = 0;               ///< Among the stages of the rank.
  uint32_t output = 0;              ///< The number of its output.
  std::vector<EdgeEnd> inputs;      ///< Outputs of others, by stage.
  std::vector<EdgeEnd> outputGrads; ///< What the readers of its output give.
  std::vector<EdgeEnd> inputGrads;  ///< What it gives to those it reads.
};

/// What the rows of a kind do on a stage of this rank; of messages, on one of
/// its edges.
struct alignas(64) ActionDescriptor {
  // While it runs.
  Label label;        ///< Of a message, but for the microbatch; else its pipe.
  Ring ring{};        ///< Of a message: where what it moves lies.
  uint32_t rank;      ///< Of a message: that at the other end.
  uint32_t peerIndex; ///< The number of that rank among those of messages.
  uint32_t readers = 1; ///< Of each value that it makes.
  /// Of work: where what it reads lies, up to `makes`, and what it makes.
  const Ring *reads = nullptr, *outputs = nullptr, *end = nullptr;
  uint8_t number; ///< Of the kind.

  // When it is linked.
  const Kind *kind;
  const StageWiring *stage;
  uint32_t value = 0; ///< Of a message: the number of what is moved.
  uint16_t peer;      ///< Of a message, as in Row.
  uint32_t next;      ///< The same on another edge, or none.

  static constexpr uint32_t none = ~uint32_t(0);
};

/// The stages of one rank. Built in O(stages * kinds + skip edges).
class Wiring {
public:
  Wiring(const Program &program, uint32_t rank) : numKinds(program.kinds.size) {
    for (const Pipe &pipe : program.pipes)
      addPipe(program, pipe, rank);
    firstDescriptor.resize(stages.size() * numKinds, ActionDescriptor::none);
    for (const StageWiring &stage : stages)
      for (const Kind &kind : program.kinds)
        addDescriptors(program, kind, stage, rank);
    addMoveRoles(program, rank);
  }
  Wiring(const Wiring &) = delete;

  /// The number of what the row does; Role::none when it cannot stand on this
  /// rank. The numbers of its kind, pipe and stage must be some of the program.
  uint32_t find(const Row &row) const {
    int32_t stage = indexOfStage[firstStage[row.pipe] + row.stage];
    uint32_t found =
        stage < 0
            ? ActionDescriptor::none
            : firstDescriptor[static_cast<size_t>(stage) * numKinds + row.kind];
    while (found != ActionDescriptor::none && all[found].peer != row.peer)
      found = all[found].next;
    return found == ActionDescriptor::none && !ends.empty() ? findMove(row)
                                                            : found;
  }
  const ActionDescriptor &descriptor(uint32_t number) const {
    return all[number];
  }
  std::vector<ActionDescriptor> &descriptors() { return all; }
  bool hosts(uint8_t pipe, uint16_t stage) const {
    return indexOfStage[firstStage[pipe] + stage] >= 0;
  }

  /// Whether the value comes from another rank.
  bool isReceived(uint32_t value) const { return received[value]; }
  size_t numStages() const { return stages.size(); }
  /// Those of the rank.
  const std::vector<StageWiring> &ofStages() const { return stages; }
  size_t numValues() const { return received.size(); }
  /// The ranks that this one exchanges messages with, by their number.
  const std::vector<uint32_t> &peers() const { return peerRanks; }

private:
  /// The stages at the other ends of the edges that lead into `stage`, or out
  /// of it; ascending.
  struct Neighbours {
    std::vector<std::vector<uint16_t>> sources, readers;

    explicit Neighbours(const Pipe &pipe)
        : sources(pipe.numStages()), readers(pipe.numStages()) {
      // Skip edges are sorted, and longer than those to the next stage.
      for (SkipEdge edge : pipe.skipEdges) {
        sources[edge.to].push_back(edge.from);
        readers[edge.from].push_back(edge.to);
      }
      const uint16_t *gap = pipe.gaps.begin();
      for (uint16_t stage = 0; stage + 1u < pipe.numStages(); ++stage)
        if (gap != pipe.gaps.end() && *gap == stage) {
          ++gap;
        } else {
          sources[stage + 1u].push_back(stage);
          readers[stage].insert(readers[stage].begin(), stage + 1);
        }
    }
  };

  void addPipe(const Program &program, const Pipe &pipe, uint32_t rank) {
    Neighbours neighbours(pipe);
    firstStage.push_back(indexOfStage.size());
    indexOfStage.resize(indexOfStage.size() + pipe.numStages(), -1);
    int32_t *index = indexOfStage.data() + firstStage.back();
    size_t first = stages.size();
    std::vector<uint16_t> hosted;
    for (uint32_t stage = 0; stage != pipe.numStages(); ++stage) {
      if (pipe.rankOfStage[stage] != rank)
        continue;
      index[stage] = static_cast<int32_t>(stages.size());
      hosted.push_back(static_cast<uint16_t>(stage));
      StageWiring &wiring = stages.emplace_back();
      wiring.pipe = static_cast<uint8_t>(&pipe - program.pipes.begin());
      wiring.number = hosted.back();
      wiring.index = static_cast<uint32_t>(index[stage]);
      wiring.output = newValue(false);
      for (uint16_t source : neighbours.sources[stage])
        wiring.inputGrads.push_back(
            {source, pipe.rankOfStage[source], newValue(false)});
    }
    // A value made here is read under its maker's number, one that arrives gets
    // a number of its own.
    for (size_t i = 0; i != hosted.size(); ++i) {
      StageWiring &wiring = stages[first + i];
      for (uint16_t source : neighbours.sources[hosted[i]])
        wiring.inputs.push_back(
            {source, pipe.rankOfStage[source],
             index[source] < 0
                 ? newValue(true)
                 : stages[static_cast<size_t>(index[source])].output});
      for (uint16_t reader : neighbours.readers[hosted[i]]) {
        auto given = [&] {
          return std::ranges::find(
                     stages[static_cast<size_t>(index[reader])].inputGrads,
                     hosted[i], &EdgeEnd::stage)
              ->value;
        };
        wiring.outputGrads.push_back(
            {reader, pipe.rankOfStage[reader],
             index[reader] < 0 ? newValue(true) : given()});
      }
    }
  }

  void addDescriptors(const Program &program, const Kind &kind,
                      const StageWiring &stage, uint32_t rank) {
    size_t number = static_cast<size_t>(&kind - program.kinds.begin());
    uint32_t &first = firstDescriptor[stage.index * numKinds + number];
    auto add = [&](const Label &label, uint16_t peer, uint32_t other,
                   uint32_t value) {
      uint32_t next = std::exchange(first, static_cast<uint32_t>(all.size()));
      all.push_back({.label = label,
                     .rank = other,
                     .peerIndex = other == rank ? 0 : peerIndexOf(other),
                     .number = static_cast<uint8_t>(number),
                     .kind = &kind,
                     .stage = &stage,
                     .value = value,
                     .peer = peer,
                     .next = next});
    };
    if (kind.runsOnStage())
      return add({stage.pipe, 0, stage.number, 0, 0}, Row::noPeer, rank, 0);
    // Outputs go to or come from the peer by the class, gradients the other
    // way.
    bool sends = kind.kindClass == KindClass::Send;
    bool isOutput = kind.defines & slot::Output;
    const std::vector<EdgeEnd> &ends =
        isOutput ? (sends ? stage.outputGrads : stage.inputs)
                 : (sends ? stage.inputGrads : stage.outputGrads);
    for (const EdgeEnd &end : ends)
      if (end.rank != rank)
        add({stage.pipe, kind.defines, sends ? stage.number : end.stage,
             sends ? end.stage : stage.number, 0},
            end.stage, end.rank, isOutput && sends ? stage.output : end.value);
  }

  /// Of actions between this rank and another one, whichever has the stage.
  void addMoveRoles(const Program &program, uint32_t rank) {
    if (!std::ranges::any_of(program.kinds, &Kind::isMove))
      return;
    const RankProgram &list = program.ranks[rank];
    for (uint64_t i = 0; i != list.numRows(); ++i) {
      Row row = list.row(i);
      if (row.kind >= numKinds || row.kind > maxMoveKind ||
          row.pipe >= program.pipes.size || !program.kinds[row.kind].isMove())
        continue;
      const Pipe &pipe = program.pipes[row.pipe];
      if (row.stage >= pipe.numStages() || row.peer >= pipe.numStages() ||
          findMove(row) != ActionDescriptor::none)
        continue;
      uint32_t near = pipe.rankOfStage[row.stage],
               far = pipe.rankOfStage[row.peer];
      if (near == far || (near != rank && far != rank))
        continue;
      uint32_t other = near == rank ? far : near;
      ends.push_back(static_cast<uint32_t>(all.size()));
      all.push_back(
          {.label = {row.pipe,
                     static_cast<uint8_t>(Label::firstMove + row.kind),
                     row.stage, row.peer, 0},
           .rank = other,
           .peerIndex = peerIndexOf(other),
           .number = row.kind,
           .kind = &program.kinds[row.kind],
           .stage = &noStage,
           .peer = row.peer,
           .next = ActionDescriptor::none});
    }
  }
  uint32_t findMove(const Row &row) const {
    for (uint32_t end : ends)
      if (all[end].number == row.kind && all[end].label.pipe == row.pipe &&
          all[end].label.from == row.stage && all[end].peer == row.peer)
        return end;
    return ActionDescriptor::none;
  }

  uint32_t newValue(bool isReceived) {
    received.push_back(isReceived);
    return static_cast<uint32_t>(received.size() - 1);
  }
  uint32_t peerIndexOf(uint32_t rank) {
    auto found = std::find(peerRanks.begin(), peerRanks.end(), rank);
    if (found == peerRanks.end())
      found = peerRanks.insert(found, rank);
    return static_cast<uint32_t>(found - peerRanks.begin());
  }

  size_t numKinds;
  std::vector<size_t> firstStage;    ///< By pipe.
  std::vector<int32_t> indexOfStage; ///< By pipe and stage; -1: elsewhere.
  std::vector<StageWiring> stages;
  std::vector<bool> received; ///< By the number of a value.
  std::vector<ActionDescriptor> all;
  std::vector<uint32_t> firstDescriptor; ///< By stage and kind.
  std::vector<uint32_t> peerRanks;
  std::vector<uint32_t> ends; ///< The roles of actions between ranks.
  StageWiring noStage{};      ///< Theirs.
  static constexpr uint8_t maxMoveKind = 255 - Label::firstMove;
};

/// The microbatches under way on the stages of a rank: nothing runs twice, or
/// without what it needs of its own stage, and no forward is left out. Throws
/// std::runtime_error, which says what is wrong. A bit a forward.
class ActivationTracker {
public:
  ActivationTracker(const Program &program, uint32_t rank, const Wiring &wiring)
      : program(program), limit(program.ranks[rank].peakActivations),
        wiring(wiring), done(wiring.numStages()), begun(wiring.numStages()) {}

  /// A forward begins.
  void beginForward(const Row &row, const StageWiring &stage) {
    std::vector<bool> &known = begun[stage.index];
    size_t number = row.microbatch - program.pipes[row.pipe].firstMicrobatch;
    if (known.size() <= number)
      known.resize(number + 1);
    if (known[number])
      throw std::runtime_error("runs twice");
    known[number] = true;
    if (program.hasBackward) {
      // What a slice attends to, the slices before it, stays until its own
      // backward. Without a backward nothing tells.
      if (sliceOf(row) != 0 && !done[stage.index].find(row.microbatch - 1))
        throw std::runtime_error("runs without the slice before it");
      done[stage.index].insert(row.microbatch, slot::Output);
    }
    if (limit != 0 && count == limit)
      throw std::runtime_error(concat("begins more activations than the ",
                                      limit, " that the compiler counted"));
    maxCount = std::max(maxCount, ++count);
  }

  /// A backward begins, or one of its parts.
  void beginBackward(const Row &row, const Kind &kind,
                     const StageWiring &stage) {
    uint8_t *slots = done[stage.index].find(row.microbatch);
    if (!slots)
      throw std::runtime_error("runs without its forward");
    if ((*slots & kind.needs) != kind.needs)
      throw std::runtime_error("runs before the gradient of the input");
    if (*slots & kind.defines)
      throw std::runtime_error("runs twice");
    *slots |= kind.defines;
    if (kind.defines & slot::InputGrad)
      checkNextSlice(row, stage);
  }

  /// Both parts of the backward have ended.
  void end(uint32_t microbatch, const StageWiring &stage) {
    done[stage.index].erase(microbatch);
    --count;
  }

  /// All forwards of the rank have begun.
  void checkComplete() const {
    for (const StageWiring &stage : wiring.ofStages()) {
      const Pipe &pipe = program.pipes[stage.pipe];
      const std::vector<bool> &known = begun[stage.index];
      auto missing = std::ranges::find(known, false) - known.begin();
      if (missing != pipe.numMicrobatches)
        throw std::runtime_error(
            concat("the forward of microbatch ", pipe.firstMicrobatch + missing,
                   " on stage ", stage.number, " is missing"));
    }
  }

  /// How many forwards have begun and not got their backward; without a
  /// backward, how many have begun.
  uint32_t size() const { return count; }
  /// The most that size() has been.
  uint32_t peak() const { return maxCount; }
  /// Calls `visit` with each microbatch whose backward is missing.
  template <class Visit> void forEach(Visit visit) const {
    for (const auto &stage : done)
      stage.forEach(visit);
  }

private:
  /// Which slice of its sequence a microbatch is.
  uint32_t sliceOf(const Row &row) const {
    const Pipe &pipe = program.pipes[row.pipe];
    return (row.microbatch - pipe.firstMicrobatch) % pipe.slices;
  }

  /// The slices after it hand back gradients first.
  void checkNextSlice(const Row &row, const StageWiring &stage) {
    if (sliceOf(row) + 1 == program.pipes[row.pipe].slices)
      return;
    uint8_t *next = done[stage.index].find(row.microbatch + 1);
    if (next && !(*next & slot::InputGrad))
      throw std::runtime_error("runs before the backward of the next slice");
  }

  const Program &program;
  uint32_t limit; ///< 0: the compiler has not counted them.
  const Wiring &wiring;
  /// By stage: the slots that are done.
  std::vector<MicrobatchMap<uint8_t>> done;
  /// By stage and microbatch, from the first: whether its forward has begun.
  std::vector<std::vector<bool>> begun;
  uint32_t count = 0, maxCount = 0;
};

} // namespace ppcc::rt
