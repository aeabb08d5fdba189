// The actions of all ranks, in columns.
#pragma once

#include "ppcc/Support/Id.h"
#include "ppcc/Support/LLVM.h"

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
  size_t size() const { return kindColumn.size(); }
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

  class Items;
  /// The groups of one rank, and what stands by itself, each a range of rows.
  Items items(RankId rank) const;
  /// The group that holds the row. O(rows of it).
  RowRange itemOf(ActionId row) const;
  /// One past the last row of the group that starts at `id`; `id + 1` for an
  /// action by itself.
  ActionId groupEnd(ActionId id, RankId rank) const {
    return itemEnd(id, end(rank));
  }

  // ---- Reading ----

  Action operator[](ActionId id) const {
    size_t i = id.value;
    return {.kind = KindId(kindColumn[i]),
            .pipe = PipeId(pipeColumn[i]),
            .stage = StageId(stageColumn[i]),
            .microbatch = microbatchColumn[i],
            .peer = StageId(peerColumn[i]),
            .phase = PhaseId(phaseColumn[i] & ~joinedBit),
            .site = SiteId(siteColumn[i]),
            .joined = bool(phaseColumn[i] & joinedBit)};
  }
  KindId kind(ActionId id) const { return KindId(kindColumn[id.value]); }
  bool joined(ActionId id) const { return phaseColumn[id.value] & joinedBit; }
  /// Bytes that the rows take.
  size_t rowBytes() const { return size() * 16; }

  // ---- Writing ----

  /// Makes room for this many rows; memory is touched only when rows come.
  void reserve(size_t rows);
  /// Begins the list of the next rank; call it once for each rank, in order.
  void beginRank() { rankStarts.push_back(rankStarts.back()); }
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
  /// Lays out `rowsOfRank[r]` empty rows for each rank, to be filled by set()
  /// in any order.
  void layout(ArrayRef<uint32_t> rowsOfRank);
  /// Overwrites a row.
  void set(ActionId id, const Action &action);
  /// Gives kinds other numbers. O(actions).
  void renumberKinds(ArrayRef<KindId> renumbered);

private:
  static constexpr uint16_t joinedBit = 0x8000;

  ActionId itemEnd(ActionId id, ActionId last) const {
    do
      ++id.value;
    while (id != last && joined(id));
    return id;
  }

  std::vector<uint8_t> kindColumn, pipeColumn;
  std::vector<uint16_t> stageColumn, peerColumn, phaseColumn;
  std::vector<uint32_t> microbatchColumn, siteColumn;
  std::vector<uint32_t> rankStarts{0};
};

/// The items of a rank, in order.
class Rows::Items {
public:
  class iterator {
  public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = RowRange;
    using difference_type = std::ptrdiff_t;
    using pointer = const RowRange *;
    using reference = RowRange;

    iterator(const Rows &rows, ActionId from, ActionId last)
        : rows(&rows), last(last), item{from, endFrom(from)} {}
    RowRange operator*() const { return item; }
    iterator &operator++() {
      item = {item.to, endFrom(item.to)};
      return *this;
    }
    bool operator==(const iterator &other) const {
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

  Items(const Rows &rows, RowRange range) : rows(rows), range(range) {}
  iterator begin() const { return {rows, range.from, range.to}; }
  iterator end() const { return {rows, range.to, range.to}; }

private:
  const Rows &rows;
  RowRange range;
};

inline Rows::Items Rows::items(RankId rank) const {
  return {*this, rows(rank)};
}

} // namespace ppcc
