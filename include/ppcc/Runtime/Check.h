// Checks a program before it runs: whatever it holds, the engine stays within
// its arrays.
#pragma once

#include "ppcc/Runtime/Rows.h"
#include "ppcc/Runtime/Wiring.h"

#include <tuple>

namespace ppcc::rt {

namespace detail {

template <class... Parts> [[noreturn]] void refuse(const Parts &...parts) {
  throw Error(concat("bad program: ", parts...));
}

inline std::string ofRow(uint32_t rank, uint64_t row) {
  return concat("row ", row, " of rank ", rank);
}

inline void checkPipe(const Program &program, const Pipe &pipe) {
  std::string name = concat("pipe `", pipe.name, "`");
  if (pipe.rankOfStage.empty() || pipe.rankOfStage.size >= Row::noPeer)
    refuse(name, " has ", pipe.rankOfStage.size, " stages");
  if (uint64_t(pipe.firstMicrobatch) + pipe.numMicrobatches > UINT32_MAX)
    refuse(name, " has too many microbatches");
  for (uint32_t rank : pipe.rankOfStage)
    if (rank >= program.numRanks)
      refuse(name, " has a stage on rank ", rank, ", but there are ",
             program.numRanks, " ranks");
  const SkipEdge *before = nullptr;
  for (const SkipEdge &edge : pipe.skipEdges) {
    if (edge.to >= pipe.numStages() || edge.from + 1 >= edge.to)
      refuse(name, " has a skip edge from stage ", edge.from, " to stage ",
             edge.to);
    if (before &&
        std::tie(before->from, before->to) >= std::tie(edge.from, edge.to))
      refuse("the skip edges of ", name, " are not in order");
    before = &edge;
  }
  const uint16_t *last = nullptr;
  for (const uint16_t &gap : pipe.gaps) {
    if (gap + 1u >= pipe.numStages() || (last && *last >= gap))
      refuse(name, " has no edge after stage ", gap,
             " to leave out, or its gaps are not in order");
    last = &gap;
  }
  for (const EdgeTensors &edge : pipe.tensors)
    if (edge.from >= edge.to || edge.to >= pipe.numStages())
      refuse(name, " has no edge from stage ", edge.from, " to stage ", edge.to,
             " to carry tensors");
  if (pipe.slices == 0 || pipe.numMicrobatches % pipe.slices != 0)
    refuse(name, " cuts ", pipe.numMicrobatches,
           " microbatches into sequences of ", pipe.slices);
}

inline void checkSites(const Program &program) {
  if (program.sites.empty() || program.phases.empty())
    refuse("it has no sites or no phases");
  for (uint64_t i = 0; i != program.sites.size; ++i) {
    const Site &site = program.sites[i];
    if (site.file < -1 || (site.file >= 0 && static_cast<uint64_t>(site.file) >=
                                                 program.files.size))
      refuse("site ", i, " is in file ", site.file, ", but there are ",
             program.files.size);
    if (site.caller >= program.sites.size)
      refuse("site ", i, " has no caller ", site.caller);
  }
}

[[noreturn]] inline void refuseRow(uint32_t rank, uint64_t number,
                                   const char *what, int64_t value) {
  refuse(ofRow(rank, number), " has no ", what, ' ', value);
}

/// Says why a row cannot stand here.
[[noreturn]] inline void refuseOperation(const Program &program, uint32_t rank,
                                         const Wiring &wiring, uint64_t number,
                                         Row row) {
  std::string what = ofRow(rank, number);
  if (!wiring.hosts(row.pipe, row.stage))
    refuse(what, " runs stage ", row.stage, ", which is on rank ",
           program.pipes[row.pipe].rankOfStage[row.stage]);
  if (program.kinds[row.kind].runsOnStage())
    refuse(what, " computes, but has a peer");
  if (!row.hasPeer())
    refuse(what, " has no peer");
  refuse(what, " has no message to exchange with stage ", row.peer);
}

/// Throws Error where a row of a segment does not fit.
inline void checkRow(const Program &program, uint32_t rank,
                     const Wiring &wiring, uint64_t number, const Row &row,
                     const Segment &segment) {
  auto require = [&](bool has, const char *what, int64_t value) {
    if (!has)
      refuseRow(rank, number, what, value);
  };
  require(row.kind < program.kinds.size, "kind", row.kind);
  require(row.pipe < program.pipes.size, "pipe", row.pipe);
  const Pipe &pipe = program.pipes[row.pipe];
  require(row.stage < pipe.numStages(), "stage", row.stage);
  if (row.microbatch != Row::noMicrobatch || segment.count != 1 ||
      program.kinds[row.kind].kindClass != KindClass::Declared)
    require(pipe.hasMicrobatch(row.microbatch), "microbatch", row.microbatch);
  if (segment.count != 1) {
    // All between the first and the last time are there when these are. No
    // product of these types leaves int64_t.
    int64_t last =
        row.microbatch + (int64_t(segment.count) - 1) * segment.advance;
    require(pipe.hasMicrobatch(last), "microbatch", last);
  }
  require(row.phase() < program.phases.size, "phase", row.phase());
  require(row.site < program.sites.size, "site", row.site);
  if (wiring.find(row) == ActionDescriptor::none)
    refuseOperation(program, rank, wiring, number, row);
}

/// What the list of a rank refers to is there.
inline void checkBounds(const Program &program, uint32_t rank) {
  const RankProgram &part = program.ranks[rank];
  if (part.rows.empty() && part.packedRows.size % sizeof(Row) != 0)
    refuse("the packed rows of rank ", rank, " are cut off");
  RowReader rows(part);
  for (const Segment &segment : part.segments) {
    uint64_t end = segment.firstRow + segment.rows;
    if (segment.firstRow > part.numRows() || end > part.numRows())
      refuse("a segment of rank ", rank, " leaves its rows");
    if (segment.rows == 0 || segment.count == 0)
      refuse("a segment of rank ", rank, " is empty");
    if (segment.count != 1 && segment.advance == 0)
      refuse("a segment of rank ", rank, " repeats the same microbatches");
    if (rows[segment.firstRow].joined())
      refuse(ofRow(rank, segment.firstRow), " joins a group before it");
  }
}

} // namespace detail

/// Throws Error when the program was made for another engine, or when what
/// stands outside the rows does not fit together. O(stages + sites +
/// segments).
inline void checkHead(const Program &program) {
  if (program.abi != abiVersion)
    throw Error(
        concat("the program has ABI ", program.abi, ", this engine has ABI ",
               abiVersion,
               ": compile the schedule again with the ppcc of this engine"));
  if (program.instance)
    throw Error("the program is for all numbers of microbatches: run one that "
                "at() gives");
  if (program.ranks.size != program.numRanks)
    detail::refuse("it has rows for ", program.ranks.size, " of ",
                   program.numRanks, " ranks");
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
              kind.collective <= Collective::From;
    if (kind.kindClass > KindClass::Declared || !known)
      detail::refuse("kind `", kind.mnemonic, "` cannot be executed");
  }
  for (const Pipe &pipe : program.pipes)
    detail::checkPipe(program, pipe);
  for (RankPair pair : program.preconnect)
    if (pair.first >= pair.second || pair.second >= program.numRanks)
      detail::refuse("it connects rank ", pair.first, " to rank ", pair.second);
  detail::checkSites(program);
  for (uint32_t rank = 0; rank != program.numRanks; ++rank)
    detail::checkBounds(program, rank);
}

/// Throws Error when there is not one stage for each rank. Checks the head,
/// too.
inline void checkStages(const Program &program, size_t numStages) {
  checkHead(program);
  if (numStages != program.numRanks)
    throw Error(concat("the program is for ", program.numRanks,
                       " ranks, but there are ", numStages));
}

/// Throws Error when a row of the rank does not fit the head, which was
/// checked. O(rows).
inline void checkRows(const Program &program, uint32_t rank,
                      const Wiring &wiring) {
  RowReader rows(program.ranks[rank]);
  for (const Segment &segment : program.ranks[rank].segments)
    for (uint64_t i = 0; i != segment.rows; ++i)
      detail::checkRow(program, rank, wiring, segment.firstRow + i,
                       rows[segment.firstRow + i], segment);
}

} // namespace ppcc::rt
