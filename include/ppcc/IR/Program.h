// A program: what each rank does, in order. The value that every pass takes and
// every emitter prints.
#pragma once

#include "ppcc/IR/ActionKind.h"
#include "ppcc/IR/Costs.h"
#include "ppcc/IR/NodeGraphs.h"
#include "ppcc/IR/Tensors.h"
#include "ppcc/Support/Id.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/iterator_range.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <string>
#include <vector>

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
  uint32_t file = 0; ///< Index into Program::files.
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

/// Two ranks, the smaller first.
struct RankPair {
  RankId low, high;
  auto operator<=>(const RankPair &) const = default;
};

/// One action, as a value. A Program stores it in 16 bytes.
struct Action {
  KindId kind;
  PipeId pipe;
  StageId stage;           ///< The stage that executes it; where its kind has
                           ///< one a rank, the first that the rank hosts.
  uint32_t microbatch = 0; ///< Of the pipe's range; noMicrobatch where its
                           ///< kind has one a stage or rank.
  StageId peer{noPeer}; ///< Of a send or receive: the stage at the other end,
                        ///< in the same pipe.
  PhaseId phase;
  SiteId site;
  bool joined =
      false; ///< It runs in one group with the action before it on its rank.

  static constexpr uint32_t noMicrobatch = 0xFFFFFFFF;
  bool hasMicrobatch() const { return microbatch != noMicrobatch; }

  static constexpr uint32_t noPeer = 0xFFFF;
  bool hasPeer() const { return peer.value != noPeer; }
};

/// Rows of one rank that run several times, the first time with their
/// microbatches as they stand.
struct Loop {
  ActionId begin, end; ///< Whole groups.
  uint32_t count = 0;  ///< At least 1.
  int32_t advance = 0; ///< What each further time adds to each microbatch.
};

/// A schedule with values for its parameters: placement, and the list of
/// actions of each rank, in columns.
class Program {
public:
  // The largest numbers that fit the columns.
  static constexpr uint32_t maxStages = 0xFFFE;
  static constexpr uint32_t maxPipes = 0x100;
  static constexpr uint32_t maxPhases = 0x7FFF;
  static constexpr uint32_t maxMicrobatches = 0xFFFFFFFE;
  static constexpr uint32_t maxRanks = 1u << 20;

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
  /// The transports under which its messages arrive in order and no rank waits
  /// for itself, as far as somebody looked; a pass that changes it forgets
  /// them.
  std::vector<std::string> provenUnder;
  /// The ranks that meet before the first action, each pair once, in one order
  /// that all ranks keep; empty when nobody asked for it. A pass that changes
  /// the program forgets it.
  std::vector<RankPair> preconnect;

  /// In the order of their rows, apart from each other. Most of the compiler
  /// takes flat programs only: those without; see Loops.h.
  std::vector<Loop> loops;

  /// Rows of all ranks.
  size_t size() const { return kindColumn.size(); }
  /// The rows of one rank: begin and end ids.
  ActionId begin(RankId rank) const { return ActionId(rankStarts[rank.value]); }
  ActionId end(RankId rank) const {
    return ActionId(rankStarts[rank.value + 1]);
  }
  size_t size(RankId rank) const { return end(rank).value - begin(rank).value; }
  /// The rank whose list holds the row. O(log ranks).
  RankId rankOf(ActionId id) const;

  Action operator[](ActionId id) const {
    size_t i = id.value;
    Action action;
    action.kind = KindId(kindColumn[i]);
    action.pipe = PipeId(pipeColumn[i]);
    action.stage = StageId(stageColumn[i]);
    action.microbatch = microbatchColumn[i];
    action.peer = StageId(peerColumn[i]);
    action.phase = PhaseId(phaseColumn[i] & ~joinedBit);
    action.joined = phaseColumn[i] & joinedBit;
    action.site = SiteId(siteColumn[i]);
    return action;
  }
  const KindInfo &kindOf(ActionId id) const {
    return kinds[KindId(kindColumn[id.value])];
  }
  bool joined(ActionId id) const { return phaseColumn[id.value] & joinedBit; }
  /// One past the last row of the group that starts at `id`; `id + 1` for an
  /// action by itself.
  ActionId groupEnd(ActionId id, RankId rank) const {
    uint32_t next = id.value + 1, last = end(rank).value;
    while (next != last && joined(ActionId(next)))
      ++next;
    return ActionId(next);
  }

  /// Makes room for this many rows; memory is touched only when rows come.
  void reserve(size_t rows);
  /// Adds a row to the last rank that was begun.
  void append(const Action &action) {
    assert(rankStarts.size() > 1 && "no rank begun");
    kindColumn.push_back(static_cast<uint8_t>(action.kind.value));
    pipeColumn.push_back(static_cast<uint8_t>(action.pipe.value));
    stageColumn.push_back(static_cast<uint16_t>(action.stage.value));
    microbatchColumn.push_back(action.microbatch);
    peerColumn.push_back(static_cast<uint16_t>(action.peer.value));
    phaseColumn.push_back(static_cast<uint16_t>(
        action.phase.value | (action.joined ? joinedBit : 0)));
    siteColumn.push_back(action.site.value);
    rankStarts.back() = static_cast<uint32_t>(kindColumn.size());
  }
  /// Begins the list of the next rank; call it once for each rank, in order.
  void beginRank() { rankStarts.push_back(rankStarts.back()); }
  /// Ranks begun so far.
  uint32_t ranksBegun() const {
    return static_cast<uint32_t>(rankStarts.size() - 1);
  }

  /// Lays out `rowsOfRank[r]` empty rows for each rank, to be filled by set()
  /// in any order.
  void layout(llvm::ArrayRef<uint32_t> rowsOfRank);
  /// Overwrites a row.
  void set(ActionId id, const Action &action);

  /// Everything but the rows and loops; what is known about all rows together,
  /// such as `provenUnder`, only when they will stand for the same actions.
  Program withoutRows(bool keepFacts = false) const;
  /// Bytes that the rows take.
  size_t rowBytes() const { return size() * 16; }

  /// The phase called `name`, added when it is new. O(phases).
  PhaseId phase(llvm::StringRef name);
  /// The file called `name`, added when it is new. O(files).
  uint32_t file(llvm::StringRef name);
  /// The pipe whose range holds the microbatch.
  std::optional<PipeId> pipeOfMicrobatch(uint32_t microbatch) const;
  /// The rank that hosts a stage.
  RankId rankOfStage(PipeId pipe, StageId stage) const {
    return pipes[pipe.value].rankOfStage[stage.value];
  }
  /// The first stage that a rank hosts, pipe after pipe. O(stages).
  std::optional<std::pair<PipeId, StageId>> firstStageOf(RankId rank) const;
  /// Puts other kinds in the place of the program's: `renumbered` has the new
  /// number of each, and settings of those that are not in `table` are dropped.
  /// O(actions).
  void setKinds(KindTable table, llvm::ArrayRef<KindId> renumbered);
  /// The first row that sends or receives. O(actions).
  std::optional<ActionId> firstMessage() const;
  /// All microbatches of all pipes.
  uint64_t totalMicrobatches() const;

private:
  static constexpr uint16_t joinedBit = 0x8000;

  std::vector<uint8_t> kindColumn, pipeColumn;
  std::vector<uint16_t> stageColumn, peerColumn, phaseColumn;
  std::vector<uint32_t> microbatchColumn, siteColumn;
  std::vector<uint32_t> rankStarts{0};
};

/// The stages that the work of `stage` reads `slotBit` from: those before it
/// for Output, those after it for InputGrad, none for WeightGrad. Ascending.
llvm::SmallVector<StageId, 2> sourcesOf(const Pipe &pipe, StageId stage,
                                        uint8_t slotBit);
/// The stages that read `slotBit` of `stage`. Ascending.
llvm::SmallVector<StageId, 2> readersOf(const Pipe &pipe, StageId stage,
                                        uint8_t slotBit);

/// `0F3`, or `0SEND_F3>7` for a message along a skip edge (the peer of a
/// receive stands behind `<`); `0REDUCE_GRAD` for an action of a stage, `STEP`
/// for one of a rank.
std::string cell(const Program &program, const Action &action);
void appendCell(const Program &program, const Action &action,
                llvm::SmallVectorImpl<char> &out);

} // namespace ppcc
