// Formulas of the number of microbatches.
#pragma once

#include "ppcc/Proof/Template.h"

namespace ppcc {

/// A quotient in its lowest terms, the denominator above 0.
struct Rational {
  int64_t numerator = 0, denominator = 1;
  static Rational of(__int128 numerator, __int128 denominator);
  std::string text() const; ///< `3`, `7/2`.
  bool operator==(const Rational &) const = default;
  friend Rational operator-(Rational a, Rational b) {
    return of(__int128(a.numerator) * b.denominator -
                  __int128(b.numerator) * a.denominator,
              __int128(a.denominator) * b.denominator);
  }
};

/// `2 P - M + 1/2`; a part without a name is a constant.
std::string sumText(ArrayRef<std::pair<Rational, StringRef>> parts);

/// slope M + intercept.
struct Formula {
  Rational slope, intercept;
  bool isExact = false; ///< Else a bound from above.
  bool operator==(const Formula &) const = default;

  /// A value of n as one of M = base + step n, in units.
  static Formula of(proof::Affine value, int64_t base, int64_t step,
                    int64_t unit);
  /// `3 M + 9`, or `at most 3 M + 9`.
  std::string text(StringRef free) const;
};

} // namespace ppcc
