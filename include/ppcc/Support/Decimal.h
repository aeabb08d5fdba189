// Decimals as whole numbers of their last place, so that sums are exact.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc::decimal {

/// A sum of decimals that were read; it cannot overflow.
using Sum = __int128;

/// The range of a number: `places` after the point, at most `max` of the last
/// place.
struct Scale {
  unsigned places;
  int64_t max;
};

/// The decimal `text`, like `2` or `0.05`; nothing when it has more places or
/// is larger.
std::optional<int64_t> parse(StringRef text, Scale scale);

/// The same for any number that JSON knows, like `-1.5e-3`, rounded to the last
/// place, halves away from zero.
std::optional<int64_t> round(StringRef text, Scale scale);

/// The most characters of a float.
inline constexpr size_t maxFloatSize = 1000;
/// The nearest float, of `1.5e-3`; nothing for one that is longer or not
/// finite.
std::optional<double> parseFloat(StringRef text);

/// The shortest decimal; parse() reads it back unless it is negative.
std::string format(Sum value, unsigned places);

} // namespace ppcc::decimal
