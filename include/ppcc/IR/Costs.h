// What a schedule says about time.
#pragma once

#include "ppcc/Support/Id.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace ppcc {

/// A time in units of 10^-9 of the unit that the user thinks in.
using Time = int64_t;

namespace cost {
inline constexpr Time unit = 1'000'000'000;
/// The largest cost of one action, group or message.
inline constexpr Time max = 1'000'000'000 * unit;

/// What is wrong with a number as a cost.
enum class Fault : uint8_t { None, Negative, TooLarge };

/// A number as a time, rounded to nine places; exact for decimals of up to nine
/// places below four million. `time` is left alone when there is a fault; what
/// is no number counts as too large.
Fault fromDouble(double value, Time &time);
/// The decimal `text`, like `2` or `0.05`, of at most nine places and at most
/// the largest cost.
std::optional<Time> parse(llvm::StringRef text);
/// The shortest decimal; parse() reads it back.
std::string format(Time time);
} // namespace cost

/// The time of an action kind.
struct CostSetting {
  KindId kind;
  std::optional<PipeId> pipe; ///< Of this pipe only; else of every pipe.
  /// For each stage of the pipe, or one for all of them.
  std::vector<Time> times;
};

/// The costs of a program, as far as they are given; see Durations for the
/// rest.
struct CostModel {
  std::vector<CostSetting> actions; ///< A later setting overrides earlier ones.
  std::optional<Time> overlap; ///< Of a whole group; else its members' sum.
  std::optional<Time> latency; ///< Of an edge between ranks.
};

} // namespace ppcc
