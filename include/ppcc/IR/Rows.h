// The actions of all ranks.
#pragma once

#include "ppcc/Support/Id.h"
#include "ppcc/Support/LLVM.h"
#include "llvm/ADT/iterator.h"

namespace ppcc {

/// One action, as a value. A Program stores it in 16 bytes.
struct Action {
  KindId kind{};
  PipeId pipe{};
  StageId stage{}; ///< The stage that executes it; where its kind has one a
                   ///< rank, the first that the rank hosts.
  uint32_t microbatch = 0; ///< Of the pipe's range; noMicrobatch where its
                           ///< kind has one a stage or rank.
  StageId peer{noPeer}; ///< Of a send or receive: the stage at the other end,
                        ///< in the same pipe.
  PhaseId phase{};
  SiteId site{};
  bool joined = false; ///< It runs in one group with the action before it.

  static constexpr uint32_t noMicrobatch = 0xFFFFFFFF;
  bool hasMicrobatch() const { return microbatch != noMicrobatch; }

  static constexpr uint32_t noPeer = 0xFFFF;
  bool hasPeer() const { return peer.value != noPeer; }

  bool operator==(const Action &) const = default;
};

/// Rows of one rank that run several times, the first time with their
/// microbatches as they stand.
struct Loop {
  ActionId begin, end; ///< Whole groups.
  uint32_t count = 0;  ///< At least 1.
  int32_t advance = 0; ///< What each further time adds to each microbatch.
};

using RowRange = IdRange<ActionId>;

/// The lists of actions of the ranks, one after another, 16 bytes an action.
class Rows {
public:
  /// In the order of their rows, apart from each other. Most of the compiler
  /// takes flat programs only: those without; see Loops.h.
  std::vector<Loop> loops;

  // ---- Walking ----

  /// Rows of all ranks.
  size_t size() const { return packed.size(); }
  RowRange rows() const { return firstIds<ActionId>(size()); }
  /// Ranks begun so far.
  uint32_t ranksBegun() const {
    return static_cast<uint32_t>(rankStarts.size() - 1);
  }
  IdRange<RankId> ranks() const { return firstIds<RankId>(ranksBegun()); }
  /// The rows of one rank.
  RowRange rows(RankId rank) const { return {begin(rank), end(rank)}; }
  ActionId begin(RankId rank) const { return ActionId(rankStarts[rank.value]); }
  ActionId end(RankId rank) const {
    return ActionId(rankStarts[rank.value + 1]);
  }
  size_t size(RankId rank) const { return end(rank).value - begin(rank).value; }
  /// The rank whose list holds the row. O(log ranks).
  RankId rankOf(ActionId id) const;

  class ItemIterator;
  /// The groups of one rank, and what stands by itself, each a range of rows.
  llvm::iterator_range<ItemIterator> items(RankId rank) const;
  /// Those of some rows of a rank, whole groups.
  llvm::iterator_range<ItemIterator> items(RowRange rows) const;
  /// The group that holds the row. O(rows of it).
  RowRange itemOf(ActionId row) const;
  /// One past the last row of the group that starts at `id`; `id + 1` for an
  /// action by itself.
  ActionId groupEnd(ActionId id, RankId rank) const {
    return itemEnd(id, end(rank));
  }

  // ---- Reading ----

  Action operator[](ActionId id) const {
    const Row &row = packed[id.value];
    return {.kind = KindId(row.kind),
            .pipe = PipeId(row.pipe),
            .stage = StageId(row.stage),
            .microbatch = row.microbatch,
            .peer = StageId(row.peer),
            .phase = PhaseId(row.phase),
            .site = SiteId(row.site),
            .joined = bool(row.joined)};
  }
  KindId kind(ActionId id) const { return KindId(packed[id.value].kind); }
  bool joined(ActionId id) const { return packed[id.value].joined; }
  /// Bytes that the rows take.
  size_t rowBytes() const { return size() * sizeof(Row); }

  // ---- Writing ----

  /// Makes room for this many rows; memory is touched only when rows come.
  void reserve(size_t rows) { packed.reserve(rows); }
  /// Begins the list of the next rank; call it once for each rank, in order.
  void beginRank() { rankStarts.push_back(rankStarts.back()); }
  /// Adds a row to the last rank that was begun.
  void append(const Action &action) {
    assert(rankStarts.size() > 1 && "no rank begun");
    packed.push_back(Row(action));
    rankStarts.back() = static_cast<uint32_t>(packed.size());
  }
  /// Lays out `rowsOfRank[r]` empty rows for each rank, to be filled by set()
  /// in any order.
  void layout(ArrayRef<uint32_t> rowsOfRank);
  /// Overwrites a row.
  void set(ActionId id, const Action &action) {
    packed[id.value] = Row(action);
  }
  /// Gives kinds other numbers. O(actions).
  void renumberKinds(ArrayRef<KindId> renumbered);

private:
  /// An action in 16 bytes.
  struct Row {
    Row() = default;
    explicit Row(const Action &action)
        : kind(action.kind.value), pipe(action.pipe.value),
          stage(action.stage.value), peer(action.peer.value),
          phase(action.phase.value), joined(action.joined),
          microbatch(action.microbatch), site(action.site.value) {}

    uint8_t kind = 0, pipe = 0;
    uint16_t stage = 0, peer = 0, phase : 15 = 0, joined : 1 = 0;
    uint32_t microbatch = 0, site = 0;
  };
  static_assert(sizeof(Row) == 16);

  ActionId itemEnd(ActionId id, ActionId last) const {
    do
      ++id.value;
    while (id != last && joined(id));
    return id;
  }

  std::vector<Row> packed;
  std::vector<uint32_t> rankStarts{0};
};

/// An item of a rank, and the way to the next.
class Rows::ItemIterator
    : public llvm::iterator_facade_base<ItemIterator, std::forward_iterator_tag,
                                        const RowRange> {
public:
  ItemIterator(const Rows &rows, ActionId from, ActionId last)
      : rows(&rows), last(last), item{from, endFrom(from)} {}
  const RowRange &operator*() const { return item; }
  using iterator_facade_base::operator++;
  ItemIterator &operator++() {
    item = {item.to, endFrom(item.to)};
    return *this;
  }
  bool operator==(const ItemIterator &other) const {
    return item.from == other.item.from;
  }

private:
  ActionId endFrom(ActionId from) const {
    return from == last ? last : rows->itemEnd(from, last);
  }

  const Rows *rows;
  ActionId last;
  RowRange item;
};

inline llvm::iterator_range<Rows::ItemIterator>
Rows::items(RowRange rows) const {
  return {{*this, rows.from, rows.to}, {*this, rows.to, rows.to}};
}
inline llvm::iterator_range<Rows::ItemIterator> Rows::items(RankId rank) const {
  return items(rows(rank));
}

} // namespace ppcc
