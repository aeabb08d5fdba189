// What declared actions wait for, what waits for them, and with whom they meet.
#pragma once

#include "ppcc/Proof/Sequence.h"

namespace ppcc::proof {

/// The declared actions of a template, whose messages are there where it has a
/// transport.
class Declared {
public:
  Declared(const Template &program, bool hasMessages);

  /// Whether there is all that rules and meetings ask for, and nothing twice.
  Finding checkComplete() const;

  /// Calls `visit(event, domain)` for the ends of rows that the start of a row
  /// waits for by rules. False where some of them are not known.
  template <class Visit>
  bool forEachRuleDependence(uint32_t rank, uint32_t row, Visit visit) const {
    if (needs.empty())
      return true;
    const Row &at = program.ranks[rank][row];
    bool known = true;
    for (KindId kind : needs[at.kind.value])
      known &= forEachInSameScope(rank, at, kind, visit);
    auto [first, last] = inFlightWaits.equal_range({rank, row});
    for (const auto &[key, wait] : llvm::make_range(first, last))
      known &= find(wait.kinds, wait.wanted, wait.when, visit);
    return known;
  }

  /// Calls `visit(event, domain)` for the starts of the other rows of the
  /// meeting of a row, if it joins one. False where they are not known.
  template <class Visit>
  bool forEachCollectivePeer(uint32_t rank, uint32_t row, Visit visit) const {
    const Row &at = program.ranks[rank][row];
    return llvm::all_of(
        peersInCollective(rank, row), [&](const Sequence *peerRow) {
          return find(peerRow, numberOf(rank, row), fullDomain(program, at),
                      [&](Event event, const Domain &domain) {
                        event.isEnd = false;
                        visit(event, domain);
                      });
        });
  }

private:
  /// By rank and kind, and then by pipe and stage; of meetings of all ranks,
  /// and rooms, those of the kind alone, by place.
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;
  static constexpr uint32_t any = 0xFFFFFFFF;
  /// What a row waits for since so many of a kind may be on their way.
  struct InFlightWait {
    const Sequence *kinds;
    Affine wanted;
    Domain when;
  };

  const KindInfo &infoOf(const Row &row) const {
    return program.head->kinds[row.kind];
  }
  const Sequence *sequence(Key key) const {
    auto found = sequences.find(key);
    return found == sequences.end() ? nullptr : &found->second;
  }
  template <class Visit>
  static bool find(const Sequence *in, Affine wanted, const Domain &whole,
                   Visit visit) {
    return !in || in->find(wanted, whole, visit);
  }

  /// The same for the rows of a kind that share with `at` what both have of
  /// stage and microbatch.
  template <class Visit>
  bool forEachInSameScope(uint32_t rank, const Row &at, KindId kind,
                          Visit visit) const {
    KindScope own = infoOf(at).scope, other = program.head->kinds[kind].scope;
    Domain whole = fullDomain(program, at);
    Key key{rank, kind.value, at.pipe.value, at.stage.value};
    if (own == other && own != KindScope::Rank)
      return find(sequence(key), at.microbatch, whole, visit);
    bool isOfRank = own == KindScope::Rank || other == KindScope::Rank;
    auto first = isOfRank ? sequences.lower_bound({rank, kind.value, 0, 0})
                          : sequences.lower_bound(key),
         last = isOfRank ? sequences.lower_bound({rank, kind.value, any, any})
                         : sequences.upper_bound(key);
    for (const auto &[of, rows] : llvm::make_range(first, last))
      for (const Sequence::Member &member : rows.all())
        for (int64_t iteration : {0, 1}) // Those between are not before it.
          if (iteration == 0 || member.hasIterations)
            visit(Event{rank, member.row, true, {0, iteration, 0}}, whole);
    return true;
  }

  void addInFlightWaits(uint32_t rank);
  Affine numberOf(uint32_t rank, uint32_t row) const;
  /// Of each other rank that must join the meeting of a row, the rows among
  /// which its own is; null for none.
  std::vector<const Sequence *> peersInCollective(uint32_t rank,
                                                  uint32_t row) const;
  Finding checkRequired(KindId kind) const;
  Finding checkRow(uint32_t rank, uint32_t row) const;

  const Template &program;
  bool hasMessages;
  std::vector<std::vector<KindId>>
      needs; ///< By kind; empty without declared ones.
  std::map<Key, Sequence> sequences;
  std::multimap<std::pair<uint32_t, uint32_t>, InFlightWait>
      inFlightWaits;                         ///< By rank and row.
  std::vector<std::vector<Affine>> ordinals; ///< By rank and row, in its kind.
};

} // namespace ppcc::proof
