// What a program is about: all but its rows.
#pragma once

#include "ppcc/IR/Costs.h"
#include "ppcc/IR/NodeGraphs.h"
#include "ppcc/IR/Rows.h"
#include "ppcc/IR/Topology.h"

namespace ppcc {

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
struct Head : Topology {
  std::string name;
  std::vector<ProgramParam> params;
  CostModel costs;
  Units units; ///< Of its costs.
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

  /// The pipe whose range holds the microbatch.
  std::optional<PipeId> pipeOfMicrobatch(uint32_t microbatch) const;
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

} // namespace ppcc
