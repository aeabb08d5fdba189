#include "ppcc/Proof/Formula.h"

using namespace ppcc;

static __int128 magnitude(__int128 x) { return x < 0 ? -x : x; }

static __int128 commonDivisor(__int128 a, __int128 b) {
  a = magnitude(a), b = magnitude(b);
  while (b > INT64_MAX || a > INT64_MAX) {
    if (b == 0)
      return a;
    a %= b;
    std::swap(a, b);
  }
  return std::gcd(static_cast<int64_t>(a), static_cast<int64_t>(b));
}

static __int128 product(__int128 a, __int128 b) {
  __int128 result;
  if (__builtin_mul_overflow(a, b, &result))
    throw std::overflow_error("product");
  return result;
}

static __int128 sum(__int128 a, __int128 b) {
  __int128 result;
  if (__builtin_add_overflow(a, b, &result))
    throw std::overflow_error("sum");
  return result;
}

Rational::Rational(__int128 n, __int128 d) : numerator(n), denominator(d) {
  if (d == 1)
    return;
  __int128 divisor = commonDivisor(n, d);
  if (d < 0)
    divisor = -divisor;
  numerator /= divisor;
  denominator /= divisor;
}

Rational ppcc::operator+(const Rational &a, const Rational &b) {
  if (a.denominator == b.denominator)
    return {sum(a.numerator, b.numerator), a.denominator};
  return {sum(product(a.numerator, b.denominator),
              product(b.numerator, a.denominator)),
          product(a.denominator, b.denominator)};
}

Rational ppcc::operator*(const Rational &a, const Rational &b) {
  return {product(a.numerator, b.numerator),
          product(a.denominator, b.denominator)};
}

std::string Rational::text() const {
  return denominator == 1 ? fmt::format("{}", numerator)
                          : fmt::format("{}/{}", numerator, denominator);
}

Formula Formula::of(proof::Affine value, int64_t base, int64_t step,
                    int64_t unit) {
  return {Rational(value.n, __int128(step) * unit),
          Rational(__int128(value.c) * step - __int128(value.n) * base,
                   __int128(step) * unit),
          true};
}

std::string ppcc::sumText(ArrayRef<std::pair<Rational, StringRef>> parts) {
  std::string text;
  for (auto [factor, name] : parts) {
    if (factor == 0)
      continue;
    bool isNegative = factor.sign() < 0;
    if (isNegative)
      factor = -factor;
    text += text.empty() ? (isNegative ? "-" : "") : isNegative ? " - " : " + ";
    if (name.empty() || factor != 1)
      text += factor.text() + (name.empty() ? "" : " ");
    text += name;
  }
  return text.empty() ? "0" : text;
}

std::string Formula::text(StringRef free) const {
  return (isExact ? "" : "at most ") +
         sumText({{slope, free}, {intercept, ""}});
}
