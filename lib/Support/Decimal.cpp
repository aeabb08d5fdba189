#include "ppcc/Support/Decimal.h"

using namespace ppcc;

static bool areDigits(StringRef text) {
  return !text.empty() && llvm::all_of(text, llvm::isDigit);
}

std::optional<int64_t> decimal::parse(StringRef text, Scale scale) {
  auto [whole, fraction] = text.split('.');
  bool hasFraction = whole.size() != text.size();
  if (!areDigits(whole) ||
      (hasFraction && (!areDigits(fraction) || fraction.size() > scale.places)))
    return std::nullopt;
  return round(text, scale);
}

std::optional<double> decimal::parseFloat(StringRef text) {
  // LLVM writes past its buffers at 40,000 digits.
  double value;
  bool isGood = text.size() <= maxFloatSize && !text.getAsDouble(value) &&
                std::isfinite(value);
  return isGood ? std::optional(value) : std::nullopt;
}

/// The first `count` of the digits, after which zeros follow, as a number,
/// rounded; nothing above `max`.
static std::optional<int64_t> leading(const std::string &digits, int64_t count,
                                      int64_t max) {
  auto digitAt = [&](int64_t i) {
    return i < int64_t(digits.size()) ? digits[size_t(i)] - '0' : 0;
  };
  decimal::Sum value = 0;
  for (int64_t i = 0; i < count && value <= max; ++i)
    value = value * 10 + digitAt(i);
  if (count >= 0)
    value += digitAt(count) >= 5;
  return value > max ? std::nullopt : std::optional<int64_t>(value);
}

std::optional<int64_t> decimal::round(StringRef text, Scale scale) {
  bool isNegative = text.consume_front("-");
  StringRef mantissa =
      text.take_until([](char c) { return c == 'e' || c == 'E'; });
  int64_t exponent = 0;
  if (mantissa.size() != text.size()) {
    StringRef power = text.drop_front(mantissa.size() + 1);
    bool isSmall = !power.consume_front("+") && power.consume_front("-");
    // More than this is 0, or too large, however many digits there are.
    constexpr int64_t maxExponent = 1'000'000;
    if (!areDigits(power))
      return std::nullopt;
    if (power.getAsInteger(10, exponent) || exponent > maxExponent)
      exponent = maxExponent;
    if (isSmall)
      exponent = -exponent;
  }
  auto [whole, fraction] = mantissa.split('.');
  if (!areDigits(whole) ||
      (whole.size() != mantissa.size() && !areDigits(fraction)))
    return std::nullopt;
  whole = whole.ltrim('0');
  if (whole.empty() && fraction.trim('0').empty())
    return 0;
  auto value =
      leading((whole + fraction).str(),
              int64_t(whole.size()) + scale.places + exponent, scale.max);
  return value && isNegative ? std::optional(-*value) : value;
}

/// The digits of a decimal, the last one first.
template <class Unsigned>
static void appendDigitsReversed(Unsigned rest, unsigned places,
                                 std::string &text) {
  for (unsigned i = 0; rest != 0 || i <= places; ++i, rest /= 10) {
    char digit = static_cast<char>('0' + unsigned(rest % 10));
    if (i < places && digit == '0' && text.empty())
      continue;
    if (i == places && !text.empty())
      text += '.';
    text += digit;
  }
}

std::string decimal::format(Sum value, unsigned places) {
  using Unsigned = unsigned __int128;
  Unsigned rest = value < 0 ? -static_cast<Unsigned>(value) : value;
  std::string text;
  if (rest <= UINT64_MAX) // Divisions of more are slow.
    appendDigitsReversed(uint64_t(rest), places, text);
  else
    appendDigitsReversed(rest, places, text);
  if (value < 0)
    text += '-';
  std::reverse(text.begin(), text.end());
  return text;
}
