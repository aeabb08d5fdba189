// Formulas of the number of microbatches.
#pragma once

#include "ppcc/Proof/Template.h"

namespace ppcc {

/// What 128 bits hold; throws std::overflow_error.
namespace wide {
inline __int128 magnitude(__int128 x) { return x < 0 ? -x : x; }

inline __int128 commonDivisor(__int128 a, __int128 b) {
  a = magnitude(a), b = magnitude(b);
  while (b > INT64_MAX || a > INT64_MAX) {
    if (b == 0)
      return a;
    a %= b;
    std::swap(a, b);
  }
  return std::gcd(static_cast<int64_t>(a), static_cast<int64_t>(b));
}

inline __int128 product(__int128 a, __int128 b) {
  __int128 result;
  if (__builtin_mul_overflow(a, b, &result))
    throw std::overflow_error("product");
  return result;
}

inline __int128 sum(__int128 a, __int128 b) {
  __int128 result;
  if (__builtin_add_overflow(a, b, &result))
    throw std::overflow_error("sum");
  return result;
}
} // namespace wide

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
inline Rational::Rational(__int128 n, __int128 d)
    : numerator(n), denominator(d) {
  if (d == 1)
    return;
  __int128 divisor = wide::commonDivisor(n, d);
  if (d < 0)
    divisor = -divisor;
  numerator /= divisor;
  denominator /= divisor;
}

inline Rational operator+(const Rational &a, const Rational &b) {
  if (a.denominator == b.denominator)
    return {wide::sum(a.numerator, b.numerator), a.denominator};
  return {wide::sum(wide::product(a.numerator, b.denominator),
                    wide::product(b.numerator, a.denominator)),
          wide::product(a.denominator, b.denominator)};
}

inline Rational operator*(const Rational &a, const Rational &b) {
  return {wide::product(a.numerator, b.numerator),
          wide::product(a.denominator, b.denominator)};
}
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
