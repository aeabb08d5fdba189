// Converts costs between numbers, text and exact times.
#include "ppcc/IR/Costs.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

#include <cmath>

using namespace ppcc;
using llvm::StringRef;

cost::Fault cost::fromDouble(double value, Time &time) {
  if (value < 0)
    return Fault::Negative;
  long double scaled = static_cast<long double>(value) * unit;
  if (!(scaled <= max))
    return Fault::TooLarge;
  time = std::llround(scaled);
  return Fault::None;
}

std::optional<Time> cost::parse(StringRef text) {
  constexpr size_t places = 9;
  auto [whole, fraction] = text.split('.');
  bool hasFraction = whole.size() != text.size();
  uint64_t units = 0;
  if (whole.getAsInteger(10, units) || units > uint64_t(max / unit) ||
      (hasFraction && (fraction.empty() || fraction.size() > places)) ||
      !llvm::all_of(fraction, llvm::isDigit))
    return std::nullopt;
  Time time = 0;
  for (size_t i = 0; i != places; ++i)
    time = time * 10 + (i < fraction.size() ? fraction[i] - '0' : 0);
  time += static_cast<Time>(units) * unit;
  return time <= max ? std::optional(time) : std::nullopt;
}

std::string cost::format(Time time) {
  if (time % unit == 0)
    return fmt::format("{}", time / unit);
  std::string text = fmt::format("{}.{:09}", time / unit, time % unit);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}
