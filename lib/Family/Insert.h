// Adds the actions that rules insert to the rows of a rank, for all n.
#pragma once

#include "AffineDomain.h"

namespace ppcc::family {

/// Follows rules on one rank, each on what those before it left.
class Inserter {
public:
  /// `loops` are the loops that loops are of, by number.
  Inserter(AffineEvaluator &terms, const Head &head, uint32_t rank,
           ArrayRef<SteadyLoop> loops, std::vector<proof::Row> &rows)
      : terms(terms), head(head), rank(rank), loops(loops), rows(rows) {}

  void follow(const sema::BoundRule &rule, const sema::Insertion &insertion);

private:
  using Row = proof::Row;
  /// What is inserted before row `at`, for an anchor.
  struct Placed {
    uint32_t at;
    uint32_t anchor;
    Row row;
  };

  bool isInLoop(uint32_t row) const { return rows[row].loop != proof::noLoop; }
  uint32_t itemBegin(uint32_t row) const;
  uint32_t itemEnd(uint32_t row) const;
  std::pair<uint32_t, uint32_t> loopRange(uint32_t row) const;
  uint64_t keyOf(const Row &row) const;
  template <class Ask> auto withLoopOf(uint32_t row, Ask ask);
  std::optional<int64_t> distanceAt(const sema::BoundRule &rule,
                                    uint32_t anchor);
  Affine valueOf(const sema::Insertion::Binding &binding, uint32_t anchor);
  Affine ordinalOf(KindId kind, uint32_t anchor);
  [[noreturn]] void peel(uint32_t row, bool atBegin) const;
  bool hasBarrier(uint32_t begin, uint32_t end, const Row &anchor, Affine of);
  uint32_t moved(uint32_t from, uint32_t border, const Row &anchor, Affine of,
                 int64_t &steps);
  void place(uint32_t anchor, uint32_t from, int64_t steps);
  void placeInLoop(uint32_t anchor, int64_t steps);
  bool isPlacedByLoop(uint32_t anchor, uint32_t windowEnd);

  AffineEvaluator &terms;
  const Head &head;
  const uint32_t rank;
  ArrayRef<SteadyLoop> loops;
  std::vector<Row> &rows;

  // Of the insertion that is followed.
  const sema::Insertion *insertion = nullptr;
  const KindInfo *info = nullptr;
  BitVector isBarrier; ///< By kind.
  std::vector<Placed> placed;
  std::map<uint32_t, uint32_t>
      movedToPreviousIteration; ///< Anchors whose action stands in the
                                ///< iteration before; how often it was found.
};

} // namespace ppcc::family
