// Rows by the numbers that they have: microbatches, or places in a queue.
#pragma once

#include "ppcc/Proof/Checker.h"
#include "ppcc/Proof/Domain.h"

namespace ppcc::proof {

/// Rows of which each has a number in each of its iterations.
class Sequence {
public:
  struct Member {
    uint32_t rank, row;
    Affine number;
    bool hasIterations = false;
  };

  void add(Member member) { members.push_back(member); }
  ArrayRef<Member> all() const { return members; }
  /// How many numbers they have.
  Affine count() const {
    Affine count;
    for (const Member &member : members)
      count = count + Affine{1, member.hasIterations, 0};
    return count;
  }

  /// Whether each number of the range is there once, for n in 0..last. From
  /// then on find() looks only at members of the same remainder.
  Finding checkExactCover(const MicrobatchRange &range, int64_t last);

  /// Calls `visit(event, domain)` for the ends of those whose number is
  /// `wanted` of another row, and the part of `whole`, what that one has, on
  /// which it is. False where that is not known.
  template <class Visit>
  bool find(Affine wanted, const Domain &whole, Visit visit) const {
    bool isDivided =
        stride != 0 && wanted.n % stride == 0 && wanted.j % stride == 0;
    const ResidueClass *part =
        isDivided ? &byResidue[*floorMod(wanted.c, stride)] : nullptr;
    ArrayRef<Member> among = part ? part->members : members;
    // Outward from where it is likely; no two have one number.
    size_t from = part && isExactCover ? part->indexOf(wanted.at(probe)) : 0;
    SmallVector<Domain, 2> pieces;
    for (size_t i = 0; i != 2 * among.size() + 1; ++i) {
      size_t at = i % 2 == 0 ? from + i / 2 : from - (i + 1) / 2;
      if (at >= among.size())
        continue;
      const Member &member = among[at];
      bool known = forEachSolution(
          whole, wanted, member.number, member.hasIterations,
          [&](Affine iteration, const Domain &domain) {
            visit(Event{member.rank, member.row, true, iteration}, domain);
            pieces.push_back(domain);
          });
      if (!known)
        return false;
      if (pieces.size() > maxPieces)
        return false;
      // To look whether that is all takes as long as to look at them.
      if (isExactCover && !pieces.empty() &&
          (i < 4 || llvm::isPowerOf2_64(i)) && covers(pieces, whole))
        return true;
    }
    return true;
  }

private:
  static constexpr size_t maxPieces = 4096;

  /// The first and the last number of a member.
  static std::pair<Affine, Affine> endsOf(const Member &member) {
    Affine first = substitute(member.number, {}),
           final = substitute(member.number, {0, member.hasIterations, 0});
    return member.number.j < 0 ? std::pair(final, first)
                               : std::pair(first, final);
  }
  /// Those of one remainder, once ordered ascending.
  struct ResidueClass {
    std::vector<Member> members;
    std::vector<__int128> firsts; ///< Of each, the first number of a large n.

    /// The member that has the number then, if one does.
    size_t indexOf(__int128 number) const {
      auto after = llvm::upper_bound(firsts, number);
      return after == firsts.begin() ? 0 : after - firsts.begin() - 1;
    }
  };

  std::vector<Member> members;
  int64_t stride =
      0; ///< Of all members that have iterations; 0 where not known.
  std::vector<ResidueClass> byResidue;
  bool isExactCover = false;
  int64_t probe = 0; ///< A large n.
};

} // namespace ppcc::proof
