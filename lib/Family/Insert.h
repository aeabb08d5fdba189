// Adds the actions that rules insert to the rows of a rank, for all n.
#pragma once

#include "Number.h"

namespace ppcc::family {

/// Follows rules on one rank, each on what those before it left.
class Inserter {
public:
  /// `windows` are the loops that windows are of, by number.
  Inserter(Terms &terms, const Head &head, uint32_t rank,
           ArrayRef<Turns> windows, std::vector<proof::Row> &rows)
      : terms(terms), head(head), rank(rank), windows(windows), rows(rows) {}

  void follow(const sema::BoundRule &rule, const sema::Insertion &insertion);

private:
  using Row = proof::Row;
  /// What is inserted in front of row `at`, for an anchor.
  struct Placed {
    uint32_t at;
    uint32_t anchor;
    Row row;
  };

  bool isInWindow(uint32_t row) const {
    return rows[row].window != proof::noWindow;
  }
  uint32_t itemBegin(uint32_t row) const;
  uint32_t itemEnd(uint32_t row) const;
  std::pair<uint32_t, uint32_t> windowOf(uint32_t row) const;
  uint64_t keyOf(const Row &row) const;
  template <class Ask> auto asAt(uint32_t row, Ask ask);
  std::optional<int64_t> distanceAt(const sema::BoundRule &rule,
                                    uint32_t anchor);
  Affine valueOf(const sema::Insertion::Binding &binding, uint32_t anchor);
  Affine ordinalOf(KindId kind, uint32_t anchor);
  [[noreturn]] void unroll(uint32_t row, bool atBegin) const;
  bool limits(uint32_t begin, uint32_t end, const Row &anchor, Affine of);
  uint32_t moved(uint32_t from, uint32_t border, const Row &anchor, Affine of,
                 int64_t &steps);
  void place(uint32_t anchor, uint32_t from, int64_t steps);
  void placeInTurns(uint32_t anchor, int64_t steps);
  bool isPlacedByTurns(uint32_t anchor, uint32_t windowEnd);

  Terms &terms;
  const Head &head;
  const uint32_t rank;
  ArrayRef<Turns> windows;
  std::vector<Row> &rows;

  // Of the insertion that is followed.
  const sema::Insertion *insertion = nullptr;
  const KindInfo *info = nullptr;
  BitVector isLimit; ///< By kind.
  std::vector<Placed> placed;
  std::map<uint32_t, uint32_t>
      wrapped; ///< Anchors whose action stands in the
               ///< turn before; how often it was found.
};

} // namespace ppcc::family
