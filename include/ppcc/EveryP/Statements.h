// What the ranks of a schedule do, for all P and M of a region at once.
#pragma once

#include "ppcc/EveryP/Form.h"
#include "ppcc/IR/ActionKind.h"

namespace ppcc::every {

/// An action, in each turn of its segment.
struct Row {
  KindId kind;
  uint32_t chunk = 0; ///< Of the class of ranks.
  Form microbatch;
};

/// An action, or those of a group, which begin and end together.
struct Unit {
  std::vector<Row> rows;
  int64_t duration = 1;
};

/// A loop whose turns are 0 .. count - 1.
struct Segment {
  Form count;
  std::vector<Unit> units;
};

struct Chunk {
  uint32_t pipe = 0;
  Form stage;
};

/// Ranks that do the same: those for which all of `where` is natural.
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

  /// Calls `visit` with the class, the segment and the unit of each unit, in an
  /// order that numbers them.
  template <class Visit> void forEachUnit(Visit visit) const {
    for (const RankClass &ranks : classes)
      for (const Segment &segment : ranks.segments)
        for (const Unit &unit : segment.units)
          visit(ranks, segment, unit);
  }
};

} // namespace ppcc::every
