// Converts costs between numbers, text and exact whole numbers.
#include "ppcc/IR/Costs.h"

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
  return decimal::parse(text, scale);
}

std::string cost::format(Time time) {
  return decimal::format(time, scale.places);
}

std::optional<Amount> amount::fromDouble(double value) {
  long double scaled = static_cast<long double>(value) * unit;
  if (!(std::abs(scaled) <= max))
    return std::nullopt;
  return std::llround(scaled);
}

llvm::ArrayRef<StringRef> scaling::names() {
  static constexpr StringRef names[] = {"all", "time", "memory", "bytes"};
  return names;
}

std::optional<int64_t> scaling::fromDouble(double value) {
  long double scaled = static_cast<long double>(value) * unit;
  if (!(scaled >= 0 && scaled <= max))
    return std::nullopt;
  return std::llround(scaled);
}

std::string scaling::format(int64_t factor) {
  return decimal::format(factor, decimals.places);
}

std::string amount::format(decimal::Sum amount) {
  return decimal::format(amount, scale.places);
}
