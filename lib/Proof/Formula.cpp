#include "ppcc/Proof/Formula.h"

using namespace ppcc;

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
