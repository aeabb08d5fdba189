#include "ppcc/Proof/Formula.h"

using namespace ppcc;

Rational Rational::of(__int128 numerator, __int128 denominator) {
  auto magnitude = [](__int128 x) { return x < 0 ? -x : x; };
  __int128 a = magnitude(numerator), b = magnitude(denominator);
  while (b != 0)
    std::tie(a, b) = std::pair(b, a % b);
  if (denominator < 0)
    a = -a;
  return {static_cast<int64_t>(numerator / a),
          static_cast<int64_t>(denominator / a)};
}

std::string Rational::text() const {
  return denominator == 1 ? fmt::format("{}", numerator)
                          : fmt::format("{}/{}", numerator, denominator);
}

Formula Formula::of(proof::Affine value, int64_t base, int64_t step,
                    int64_t unit) {
  return {Rational::of(value.n, __int128(step) * unit),
          Rational::of(__int128(value.c) * step - __int128(value.n) * base,
                       __int128(step) * unit),
          true};
}

std::string Formula::text(StringRef free) const {
  std::string text = isExact ? "" : "at most ";
  if (slope.numerator == 0)
    return text + intercept.text();
  text += slope.text() == "1" ? free.str() : slope.text() + " " + free.str();
  if (intercept.numerator > 0)
    text += " + " + intercept.text();
  if (intercept.numerator < 0)
    text += " - " + intercept.text().substr(1);
  return text;
}
