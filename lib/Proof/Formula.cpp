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

std::string ppcc::sumText(ArrayRef<std::pair<Rational, StringRef>> parts) {
  std::string text;
  for (auto [factor, name] : parts) {
    if (factor == Rational())
      continue;
    bool isNegative = factor.numerator < 0;
    if (isNegative)
      factor.numerator = -factor.numerator;
    text += text.empty() ? (isNegative ? "-" : "") : isNegative ? " - " : " + ";
    if (name.empty() || factor != Rational{1, 1})
      text += factor.text() + (name.empty() ? "" : " ");
    text += name;
  }
  return text.empty() ? "0" : text;
}

std::string Formula::text(StringRef free) const {
  return (isExact ? "" : "at most ") +
         sumText({{slope, free}, {intercept, ""}});
}
