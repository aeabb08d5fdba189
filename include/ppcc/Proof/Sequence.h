// Rows by the numbers that they have: microbatches, or places in a queue.
#pragma once

#include "ppcc/Proof/Checker.h"
#include "ppcc/Proof/Domain.h"

namespace ppcc::proof {

/// Rows of which each has a number in each of its turns.
class Sequence {
public:
  struct Member {
    uint32_t rank, row;
    Affine number;
    bool hasTurns = false;
  };

  void add(Member member) { members.push_back(member); }
  ArrayRef<Member> all() const { return members; }

  /// Whether each number of the range is there once, for n in 0..last. From
  /// then on find() looks only at members of the same remainder.
  Finding fill(const Range &range, int64_t last);

  /// Calls `visit(member, turn, domain)` for those whose number is `wanted` of
  /// another row, and the part of `whole`, what that one has, on which it is.
  /// False where that is not known.
  template <class Visit>
  bool find(Affine wanted, const Domain &whole, Visit visit) const {
    bool isDivided =
        stride != 0 && wanted.n % stride == 0 && wanted.j % stride == 0;
    ArrayRef<Member> among =
        isDivided ? byRemainder[*floorMod(wanted.c, stride)] : members;
    // Outward from where it is likely; no two have one number.
    size_t from = isFilled ? placeOf(wanted, among) : 0;
    SmallVector<Domain, 2> pieces;
    for (size_t i = 0; i != 2 * among.size() + 1; ++i) {
      size_t at = i % 2 == 0 ? from + i / 2 : from - (i + 1) / 2;
      if (at >= among.size())
        continue;
      const Member &member = among[at];
      bool known = forEachMeeting(whole, wanted, member.number, member.hasTurns,
                                  [&](Affine turn, const Domain &domain) {
                                    visit(member, turn, domain);
                                    pieces.push_back(domain);
                                  });
      if (!known)
        return false;
      if (isFilled && !pieces.empty() && covers(pieces, whole))
        return true;
    }
    return true;
  }

private:
  /// The first and the last number of a member.
  static std::pair<Affine, Affine> endsOf(const Member &member) {
    Affine first = substitute(member.number, {}),
           final = substitute(member.number, {0, member.hasTurns, 0});
    return member.number.j < 0 ? std::pair(final, first)
                               : std::pair(first, final);
  }
  /// The member that has the number in turn 0 of a large n, if one does.
  size_t placeOf(Affine wanted, ArrayRef<Member> among) const {
    auto behind = llvm::partition_point(among, [&](const Member &member) {
      return endsOf(member).first.at(probe) <= wanted.at(probe);
    });
    return behind == among.begin() ? 0 : behind - among.begin() - 1;
  }

  std::vector<Member> members;
  int64_t stride = 0; ///< Of all members that have turns; 0 where not known.
  std::vector<std::vector<Member>> byRemainder; ///< Once ordered, ascending.
  bool isFilled = false;
  int64_t probe = 0; ///< A large n.
};

} // namespace ppcc::proof
