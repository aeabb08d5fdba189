// Checks a program before it runs: whatever it holds, the engine stays within
// its arrays.
#pragma once

#include "ppcc/Runtime/Rows.h"
#include "ppcc/Runtime/Wiring.h"

namespace ppcc::rt {

namespace detail {

[[noreturn]] inline void refuse(const std::string &what) {
  throw Error("bad program: " + what);
}

inline std::string ofRow(uint32_t rank, uint64_t row) {
  return "row " + std::to_string(row) + " of rank " + std::to_string(rank);
}

inline void checkPipe(const Program &program, const Pipe &pipe) {
  std::string name = "pipe `" + std::string(pipe.name) + "`";
  if (pipe.rankOfStage.empty() || pipe.rankOfStage.size >= Row::noPeer)
    refuse(name + " has " + std::to_string(pipe.rankOfStage.size) + " stages");
  if (uint64_t(pipe.firstMicrobatch) + pipe.numMicrobatches > UINT32_MAX)
    refuse(name + " has too many microbatches");
  for (uint32_t rank : pipe.rankOfStage)
    if (rank >= program.numRanks)
      refuse(name + " has a stage on rank " + std::to_string(rank) +
             ", but there are " + std::to_string(program.numRanks) + " ranks");
  const SkipEdge *before = nullptr;
  for (const SkipEdge &edge : pipe.skipEdges) {
    if (edge.to >= pipe.numStages() || edge.from + 1 >= edge.to)
      refuse(name + " has a skip edge from stage " + std::to_string(edge.from) +
             " to stage " + std::to_string(edge.to));
    if (before && (before->from > edge.from ||
                   (before->from == edge.from && before->to >= edge.to)))
      refuse("the skip edges of " + name + " are not in order");
    before = &edge;
  }
  const uint16_t *last = nullptr;
  for (const uint16_t &gap : pipe.gaps) {
    if (gap + 1u >= pipe.numStages() || (last && *last >= gap))
      refuse(name + " has no edge behind stage " + std::to_string(gap) +
             " to leave out, or its gaps are not in order");
    last = &gap;
  }
  for (const EdgeTensors &edge : pipe.tensors)
    if (edge.from >= edge.to || edge.to >= pipe.numStages())
      refuse(name + " has no edge from stage " + std::to_string(edge.from) +
             " to stage " + std::to_string(edge.to) + " to carry tensors");
  if (pipe.slices == 0 || pipe.numMicrobatches % pipe.slices != 0)
    refuse(name + " cuts " + std::to_string(pipe.numMicrobatches) +
           " microbatches into sequences of " + std::to_string(pipe.slices));
}

inline void checkSites(const Program &program) {
  if (program.sites.empty() || program.phases.empty())
    refuse("it has no sites or no phases");
  for (uint64_t i = 0; i != program.sites.size; ++i) {
    const Site &site = program.sites[i];
    if (site.file < -1 || (site.file >= 0 && static_cast<uint64_t>(site.file) >=
                                                 program.files.size))
      refuse("site " + std::to_string(i) + " is in file " +
             std::to_string(site.file) + ", but there are " +
             std::to_string(program.files.size));
    if (site.caller >= program.sites.size)
      refuse("site " + std::to_string(i) + " has no caller " +
             std::to_string(site.caller));
  }
}

class RowCheck {
public:
  RowCheck(const Program &program, uint32_t rank, const Wiring &wiring)
      : program(program), wiring(wiring), rank(rank) {}

  /// Checks a row of a segment.
  void operator()(uint64_t number, const Row &row,
                  const Segment &segment) const {
    if (!fits(row, segment))
      refuseRow(number, row, segment);
  }

private:
  bool fits(const Row &row, const Segment &segment) const {
    if (row.kind >= program.kinds.size || row.pipe >= program.pipes.size ||
        row.phase() >= program.phases.size || row.site >= program.sites.size)
      return false;
    const Pipe &pipe = program.pipes[row.pipe];
    return row.stage < pipe.numStages() && hasMicrobatch(row, segment, pipe) &&
           wiring.find(row) != Role::none;
  }

  bool hasMicrobatch(const Row &row, const Segment &segment,
                     const Pipe &pipe) const {
    if (row.microbatch == Row::noMicrobatch)
      return segment.count == 1 &&
             program.kinds[row.kind].kindClass == KindClass::Declared;
    return pipe.hasMicrobatch(row.microbatch) &&
           (segment.count == 1 || pipe.hasMicrobatch(last(row, segment)));
  }

  /// The microbatch of the last time that the row runs; all in between are
  /// there when the first and the last are. No product of these types leaves
  /// int64_t.
  static int64_t last(const Row &row, const Segment &segment) {
    return row.microbatch + (int64_t(segment.count) - 1) * segment.advance;
  }

  /// Says what is wrong with a row that does not fit.
  [[noreturn]] void refuseRow(uint64_t number, const Row &row,
                              const Segment &segment) const {
    auto no = [&](const char *what, int64_t value) {
      refuse(ofRow(rank, number) + " has no " + what + " " +
             std::to_string(value));
    };
    if (row.kind >= program.kinds.size)
      no("kind", row.kind);
    if (row.pipe >= program.pipes.size)
      no("pipe", row.pipe);
    const Pipe &pipe = program.pipes[row.pipe];
    if (row.stage >= pipe.numStages())
      no("stage", row.stage);
    if (!hasMicrobatch(row, segment, pipe))
      for (int64_t microbatch : {int64_t(row.microbatch), last(row, segment)})
        if (!pipe.hasMicrobatch(microbatch))
          no("microbatch", microbatch);
    if (row.phase() >= program.phases.size)
      no("phase", row.phase());
    if (row.site >= program.sites.size)
      no("site", row.site);
    refuseOperation(number, row);
  }

  /// Says why the row cannot stand here.
  [[noreturn]] void refuseOperation(uint64_t number, const Row &row) const {
    std::string what = ofRow(rank, number);
    if (!wiring.hosts(row.pipe, row.stage))
      refuse(what + " runs stage " + std::to_string(row.stage) +
             ", which is on rank " +
             std::to_string(program.pipes[row.pipe].rankOfStage[row.stage]));
    if (program.kinds[row.kind].isWork())
      refuse(what + " computes, but has a peer");
    if (!row.hasPeer())
      refuse(what + " has no peer");
    refuse(what + " has no message to exchange with stage " +
           std::to_string(row.peer));
  }

  const Program &program;
  const Wiring &wiring;
  uint32_t rank;
};

/// What the list of a rank refers to is there.
inline void checkBounds(const Program &program, uint32_t rank) {
  const RankProgram &part = program.ranks[rank];
  if (part.rows.empty() && part.packedRows.size % sizeof(Row) != 0)
    refuse("the packed rows of rank " + std::to_string(rank) + " are cut off");
  RowReader rows(part);
  for (const Segment &segment : part.segments) {
    uint64_t end = segment.firstRow + segment.rows;
    if (segment.firstRow > part.numRows() || end > part.numRows())
      refuse("a segment of rank " + std::to_string(rank) + " leaves its rows");
    if (segment.rows == 0 || segment.count == 0)
      refuse("a segment of rank " + std::to_string(rank) + " is empty");
    if (segment.count != 1 && segment.advance == 0)
      refuse("a segment of rank " + std::to_string(rank) +
             " repeats the same microbatches");
    if (rows[segment.firstRow].joined())
      refuse(ofRow(rank, segment.firstRow) + " joins a group before it");
  }
}

} // namespace detail

/// Throws Error when the program was made for another engine, or when what
/// stands outside the rows does not fit together. O(stages + sites +
/// segments).
inline void checkHead(const Program &program) {
  if (program.abi != abiNumber)
    throw Error("the program has ABI " + std::to_string(program.abi) +
                ", this engine has ABI " + std::to_string(abiNumber) +
                ": compile the schedule again with the ppcc of this engine");
  if (program.instance)
    throw Error("the program is for all numbers of microbatches: run one that "
                "at() gives");
  if (program.ranks.size != program.numRanks)
    detail::refuse("it has rows for " + std::to_string(program.ranks.size) +
                   " of " + std::to_string(program.numRanks) + " ranks");
  if (program.kinds.size > 256 || program.pipes.size > 256)
    detail::refuse("it has too many kinds or pipes");
  for (const Kind &kind : program.kinds) {
    bool known =
        kind.defines == slot::Output || kind.defines == slot::InputGrad;
    if (kind.kindClass == KindClass::Compute)
      known |= kind.defines == slot::WeightGrad ||
               kind.defines == (slot::InputGrad | slot::WeightGrad);
    if (kind.kindClass == KindClass::Declared)
      known = kind.defines == 0 && kind.needs == 0 &&
              kind.meeting <= Meeting::From;
    if (kind.kindClass > KindClass::Declared || !known)
      detail::refuse("kind `" + std::string(kind.letters) +
                     "` cannot be executed");
  }
  for (const Pipe &pipe : program.pipes)
    detail::checkPipe(program, pipe);
  for (RankPair pair : program.preconnect)
    if (pair.first >= pair.second || pair.second >= program.numRanks)
      detail::refuse("it connects rank " + std::to_string(pair.first) +
                     " to rank " + std::to_string(pair.second));
  detail::checkSites(program);
  for (uint32_t rank = 0; rank != program.numRanks; ++rank)
    detail::checkBounds(program, rank);
}

/// Throws Error when there is not one stage for each rank. Checks the head,
/// too.
inline void checkStages(const Program &program, size_t numStages) {
  checkHead(program);
  if (numStages != program.numRanks)
    throw Error("the program is for " + std::to_string(program.numRanks) +
                " ranks, but there are " + std::to_string(numStages));
}

/// Throws Error when a row of the rank does not fit the head, which was
/// checked. O(rows).
inline void checkRows(const Program &program, uint32_t rank,
                      const Wiring &wiring) {
  detail::RowCheck check(program, rank, wiring);
  RowReader rows(program.ranks[rank]);
  for (const Segment &segment : program.ranks[rank].segments)
    for (uint64_t i = 0; i != segment.rows; ++i)
      check(segment.firstRow + i, rows[segment.firstRow + i], segment);
}

} // namespace ppcc::rt
