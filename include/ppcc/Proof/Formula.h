// Formulas of the number of microbatches.
#pragma once

#include "ppcc/Proof/Template.h"

namespace ppcc {

/// A quotient in its lowest terms, the denominator above 0. Throws
/// std::overflow_error for what does not fit.
struct Rational {
  __int128 numerator = 0, denominator = 1;

  Rational(__int128 numerator = 0, __int128 denominator = 1);
  std::string text() const; ///< `3`, `7/2`.
  int sign() const { return numerator > 0 ? 1 : numerator < 0 ? -1 : 0; }
  bool operator==(const Rational &) const = default;
  Rational operator-() const {
    Rational negative = *this;
    negative.numerator = -numerator;
    return negative;
  }
};
Rational operator+(const Rational &a, const Rational &b);
Rational operator*(const Rational &a, const Rational &b);
inline Rational operator-(const Rational &a, const Rational &b) {
  return a + -b;
}
inline Rational operator/(const Rational &a, const Rational &b) {
  return a * Rational(b.denominator, b.numerator);
}
inline bool operator<(const Rational &a, const Rational &b) {
  return (a - b).sign() < 0;
}

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
