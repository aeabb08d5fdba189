// What the ranks of a schedule do, for all P and M of a region at once.
#pragma once

#include "ppcc/EveryP/Form.h"
#include "ppcc/IR/ActionKind.h"

namespace ppcc::every {

/// An action, in each iteration of its segment.
struct Row {
  KindId kind;
  uint32_t chunk = 0; ///< Of the class of ranks.
  Form microbatch;
};

/// An action, or those of a group, which begin and end together.
struct Unit {
  std::vector<Row> rows;
  int64_t duration = 1;
  uint32_t rankClass = 0, segment = 0;
};

/// A loop whose iterations are 0 .. count - 1, of units from `begin` to `end`.
struct Segment {
  Form count;
  uint32_t begin = 0, end = 0;
};

struct Chunk {
  uint32_t pipe = 0;
  Form stage;
};

/// Ranks that do the same: those for which all of `where` is non-negative.
struct RankClass {
  Forms where;
  Form rank; ///< The number of a rank, of Dim::Rank.
  std::vector<Chunk> chunks;
  std::vector<Segment> segments; ///< In their order.
};

struct Pipe {
  Form stages, first, count; ///< And its microbatches.
};

/// The programs of all P and M of a region. Each stage of a pipe is a chunk of
/// one rank; each rank belongs to one class.
struct Statements {
  Forms region;
  KindTable kinds;
  bool hasBackward = true;
  std::vector<Pipe> pipes;
  std::vector<RankClass> classes;
  std::vector<Unit> units; ///< Class by class, in their order.

  const RankClass &classOf(const Unit &unit) const {
    return classes[unit.rankClass];
  }
  const Segment &segmentOf(const Unit &unit) const {
    return classOf(unit).segments[unit.segment];
  }
};

} // namespace ppcc::every
