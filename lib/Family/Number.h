// Integers that depend on n and on the turn of a window, and questions to them
// that have one answer for all n and turns, or none.
#pragma once

#include "ppcc/Family/Layout.h"
#include "ppcc/Family/Terms.h"

namespace ppcc::family {

/// Ends a layout.
struct Stop {
  Outcome outcome;
};

[[noreturn]] inline void stop(Outcome::Kind kind, SourceRange place,
                              std::string why, int64_t value = 0) {
  throw Stop{{kind, value, {}, place, std::move(why), {}}};
}

/// The loop that a window is of.
struct Turns {
  uint32_t loop = 0;   ///< Its statement,
  Margins margins;     ///< turns of it before and behind the window,
  int64_t perTurn = 0; ///< and in one of the window.
};

/// Where numbers are looked at: n in 0..last and, within a window, turns 0..n.
class Numbers {
public:
  using Number = Affine;
  static constexpr uint64_t mostSteps = 20'000'000;
  [[noreturn]] static void refuse(bool isWrong, SourceRange place,
                                  std::string why) {
    stop(isWrong ? Outcome::Kind::Wrong : Outcome::Kind::Undecided, place,
         std::move(why));
  }

  [[noreturn]] static void exclude(SourceRange place, std::string why) {
    stop(Outcome::Kind::Excluded, place, std::move(why));
  }

  int64_t last = proof::endless;
  bool inWindow = false;
  Turns turns; ///< Of the window.
  const Hints *hints = nullptr;

  /// Whether x >= 0.
  bool isNatural(Affine x, SourceRange place) const;
  bool isZero(Affine x, SourceRange place) const;
  Affine product(Affine a, Affine b, SourceRange place) const;
  /// Rounded down; and what is left.
  Affine quotient(Affine a, Affine b, SourceRange place) const;
  Affine remainder(Affine a, Affine b, SourceRange place) const;
  /// The value of what must be the same for all n and turns.
  int64_t constant(Affine x, SourceRange place, const char *what) const;
  /// Asks for more turns of the loop before its window, in which what happens
  /// first comes to its end.
  [[noreturn]] void deepen(SourceRange place, std::string why) const;
  /// Asks for so many more turns before the window, or behind it.
  [[noreturn]] void unroll(const Turns &of, int64_t before, int64_t behind,
                           SourceRange place, std::string why) const {
    throw Stop{unrolled(of, before, behind, place, std::move(why))};
  }
  /// The loop is not unrolled further than this for a turn that differs.
  static constexpr int64_t mostUnrolled = 20'000;
  /// Refuses what may not fit.
  static Affine checked(Affine x, SourceRange place);

private:
  struct Bounds {
    std::optional<__int128> least, most; ///< Nothing for no bound.
  };
  Bounds bounds(Affine x) const;
  Outcome unrolled(const Turns &of, int64_t before, int64_t behind,
                   SourceRange place, std::string why) const;
  [[noreturn]] void split(Affine x, __int128 root, bool isPoint,
                          SourceRange place) const;
  std::optional<int64_t> commonQuotient(Affine a, int64_t b) const;
};

using Term = TermOf<Affine>;
using Terms = TermsOf<Numbers>;

} // namespace ppcc::family
