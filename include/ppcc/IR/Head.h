// What a program is about: all but its rows.
#pragma once

#include "ppcc/IR/ActionKind.h"
#include "ppcc/IR/Costs.h"
#include "ppcc/IR/NodeGraphs.h"
#include "ppcc/IR/Rows.h"
#include "ppcc/IR/Tensors.h"

namespace ppcc {

/// Stages that some of the microbatches pass through. Each has an edge to the
/// next, as far as `gaps` does not take it away; all edges lead up.
struct Pipe {
  std::string name;
  uint32_t firstMicrobatch = 0;
  uint32_t numMicrobatches = 0;
  std::vector<RankId> rankOfStage; ///< One entry a stage.
  /// Edges beside those from each stage to the next: (from, to) with from < to,
  /// sorted, no duplicates, never a neighbour pair.
  std::vector<std::pair<StageId, StageId>> skipEdges;
  /// Stages without an edge to the next, sorted, no duplicates.
  std::vector<StageId> gaps;
  /// So many microbatches in a row are slices of one sequence, the first of
  /// them its beginning; a divisor of `numMicrobatches`.
  uint32_t slices = 1;
  /// What edges carry, by their stages, as far as that is known.
  std::vector<EdgeTensors> tensors;

  uint32_t numStages() const {
    return static_cast<uint32_t>(rankOfStage.size());
  }
  IdRange<StageId> stages() const { return firstIds<StageId>(numStages()); }
  uint32_t endMicrobatch() const { return firstMicrobatch + numMicrobatches; }
  bool hasMicrobatch(uint32_t microbatch) const {
    return microbatch >= firstMicrobatch && microbatch < endMicrobatch();
  }
  /// Whether a stage that is not the last has an edge to the next.
  /// O(log gaps).
  bool hasEdgeToNext(StageId stage) const {
    return !std::binary_search(gaps.begin(), gaps.end(), stage);
  }
  /// O(log edges).
  bool hasEdge(StageId from, StageId to) const {
    return from.value + 1 == to.value
               ? to.value < numStages() && hasEdgeToNext(from)
               : std::binary_search(skipEdges.begin(), skipEdges.end(),
                                    std::pair(from, to));
  }
  /// The slice of the same sequence whose `slotBit` must be there before that
  /// of `microbatch`, on every stage: causal attention reads the keys of
  /// earlier slices, and hands the gradients of keys back to them.
  std::optional<uint32_t> sliceBefore(uint32_t microbatch,
                                      uint8_t slotBit) const {
    if (slices == 1)
      return std::nullopt;
    uint32_t slice = (microbatch - firstMicrobatch) % slices;
    if (slotBit == slot::Output && slice != 0)
      return microbatch - 1;
    if (slotBit == slot::InputGrad && slice + 1 != slices)
      return microbatch + 1;
    return std::nullopt;
  }
};

/// The place in a source file that an action comes from.
struct Site {
  uint32_t file = 0; ///< Index into Head::files.
  uint32_t line = 0, column = 0;
  SiteId caller; ///< The call of the block that holds the place; 0 when it is
                 ///< in no block.
};

/// A file that sites speak of.
struct SiteFile {
  std::string name;
  /// The file is the program's own text (IR, CSV), so its places follow from
  /// where the cells stand and the printer leaves them out.
  bool own = false;
};

/// How a program posts its messages: Megatron-LM has two families of functions,
/// named in Calls.h.
enum class CallStyle : uint8_t {
  None,     ///< One by one, or in batches without a name.
  Exchange, ///< Each call with one neighbour, for 1F1B.
  Ring,     ///< Each call with all neighbours, for interleaved 1F1B.
};

/// A parameter of the schedule with the value it was given, as text.
struct ProgramParam {
  std::string name, type, value;
};

/// A schedule with values for its parameters: placement, what its rows refer
/// to, and what they cost.
struct Head {
  std::string name;
  std::vector<ProgramParam> params;
  uint32_t numRanks = 0;
  std::vector<Pipe> pipes;
  bool hasBackward = true; ///< False for a forward-only program.
  KindTable kinds;
  CostModel costs;
  /// The letters of the layers of each stage, the same in every pipe; empty
  /// when nobody said.
  std::vector<std::string> stageLayers;
  NodeGraphs nodes;                    ///< What its actions are made of.
  CallStyle calls = CallStyle::None;   ///< Of its messages.
  std::vector<std::string> phases{""}; ///< By PhaseId; the first is "no phase".
  std::vector<SiteFile> files;
  std::vector<Site> sites{Site{}}; ///< By SiteId; the first is "unknown".

  /// The phase called `name`, added when it is new. O(phases).
  PhaseId phase(StringRef name);
  /// The file called `name`, added when it is new. O(files).
  uint32_t file(StringRef name);
  /// A new site.
  SiteId addSite(Site site) {
    sites.push_back(site);
    return SiteId(sites.size() - 1);
  }
  /// Puts other kinds in the place of its own: `renumbered` has the new number
  /// of each, and settings of those that are not in `table` are dropped.
  void setKinds(KindTable table, ArrayRef<KindId> renumbered);

  IdRange<PipeId> pipeIds() const { return firstIds<PipeId>(pipes.size()); }
  /// The pipe whose range holds the microbatch.
  std::optional<PipeId> pipeOfMicrobatch(uint32_t microbatch) const;
  /// The rank that hosts a stage.
  RankId rankOfStage(PipeId pipe, StageId stage) const {
    return pipes[pipe.value].rankOfStage[stage.value];
  }
  /// The first stage that a rank hosts, pipe after pipe. O(stages).
  std::optional<std::pair<PipeId, StageId>> firstStageOf(RankId rank) const;
  /// All microbatches of all pipes.
  uint64_t totalMicrobatches() const;
};

/// Calls `visit(pipe, from, to)` for both directions of each edge.
template <class Visit> void forEachEdge(ArrayRef<Pipe> pipes, Visit visit) {
  for (auto [i, pipe] : llvm::enumerate(pipes)) {
    auto both = [&, i = i](StageId a, StageId b) {
      visit(PipeId(i), a, b);
      visit(PipeId(i), b, a);
    };
    for (uint32_t stage = 1; stage < pipe.numStages(); ++stage)
      if (pipe.hasEdgeToNext(StageId(stage - 1)))
        both(StageId(stage - 1), StageId(stage));
    for (auto [from, to] : pipe.skipEdges)
      both(from, to);
  }
}

/// Numbers for the stages of all pipes, one after another.
class StageNumbering {
public:
  explicit StageNumbering(ArrayRef<Pipe> pipes) {
    for (const Pipe &pipe : pipes) {
      firsts.push_back(stages);
      stages += pipe.numStages();
    }
  }

  size_t size() const { return stages; }
  size_t operator()(PipeId pipe, StageId stage) const {
    return firsts[pipe.value] + stage.value;
  }
  size_t operator()(const Action &action) const {
    return (*this)(action.pipe, action.stage);
  }

private:
  std::vector<size_t> firsts; ///< By pipe.
  size_t stages = 0;
};

/// The stages that the work of `stage` reads `slotBit` from: those before it
/// for Output, those after it for InputGrad, none for WeightGrad. Ascending.
SmallVector<StageId, 2> sourcesOf(const Pipe &pipe, StageId stage,
                                  uint8_t slotBit);
/// The stages that read `slotBit` of `stage`. Ascending.
SmallVector<StageId, 2> readersOf(const Pipe &pipe, StageId stage,
                                  uint8_t slotBit);

} // namespace ppcc
