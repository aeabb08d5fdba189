// Integers that depend on n and on the turn of a window, and questions to them
// that have one answer for all n and turns, or none.
#pragma once

#include "ppcc/Family/Layout.h"

namespace ppcc::family {

/// Ends a layout.
struct Stop {
  Outcome outcome;
};

[[noreturn]] inline void stop(Outcome::Kind kind, SourceRange place,
                              std::string why, int64_t value = 0) {
  throw Stop{{kind, value, {}, place, std::move(why), {}}};
}

/// Where numbers are looked at: n in 0..last and, within a window, turns 0..n.
class Numbers {
public:
  int64_t last = proof::endless;
  bool inWindow = false;
  uint32_t loop = 0;   ///< The statement of the window.
  Margins margins;     ///< Turns of it before and behind the window,
  int64_t perTurn = 0; ///< and of the loop in one of the window.
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
  /// Refuses what may not fit.
  static Affine checked(Affine x, SourceRange place);

private:
  struct Bounds {
    std::optional<__int128> least, most; ///< Nothing for no bound.
  };
  Bounds bounds(Affine x) const;
  [[noreturn]] void split(Affine x, __int128 root, bool isPoint,
                          SourceRange place) const;
  std::optional<int64_t> commonQuotient(Affine a, int64_t b) const;
};

} // namespace ppcc::family
