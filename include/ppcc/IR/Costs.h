// What a schedule says about time and memory.
#pragma once

#include "ppcc/Support/Decimal.h"
#include "ppcc/Support/Id.h"

#include "llvm/ADT/ArrayRef.h"
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
inline constexpr decimal::Scale scale{9, max};

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

/// An amount of memory, or of data, in units of 10^-6 of the unit that the user
/// thinks in.
using Amount = int64_t;

namespace amount {
inline constexpr Amount unit = 1'000'000;
/// The largest amount of one action, stage, message or rank.
inline constexpr Amount max = 1'000'000'000'000 * unit;
inline constexpr decimal::Scale scale{6, max};

/// A number as an amount, rounded to six places; nothing when its absolute
/// value is too large.
std::optional<Amount> fromDouble(double value);
/// The shortest decimal.
std::string format(decimal::Sum amount);
} // namespace amount

/// The time, or the memory, of an action kind.
struct CostSetting {
  KindId kind;
  std::optional<PipeId> pipe; ///< Of this pipe only; else of every pipe.
  /// For each stage of the pipe, or one for all of them. Of memory, what the
  /// action takes, or gives back when it is negative.
  std::vector<int64_t> times;
};

/// The time of the nodes of a name, on every stage.
struct NodeCost {
  KindId part; ///< The letters before the name.
  std::string name;
  Time time;
};

/// A property of stages, or of the edges that lead up from them.
struct StageSetting {
  std::optional<PipeId> pipe; ///< Of this pipe only; else of every pipe.
  /// For each stage of the pipe, or one for all of them.
  std::vector<int64_t> values;
};

/// How much more, or less, the microbatches take than the other settings say.
struct MicrobatchScale {
  enum class Of : uint8_t { All, Time, Memory, Bytes };
  Of of = Of::All;
  std::optional<KindId> kind; ///< Of Time: for actions of this kind only.
  /// For each microbatch, pipe after pipe; in units of scaling::unit.
  std::vector<int64_t> factors;
};

namespace scaling {
inline constexpr int64_t unit = 1'000'000'000;
inline constexpr int64_t max = 1'000'000 * unit;
inline constexpr decimal::Scale decimals{9, max};

/// The words of MicrobatchScale::Of.
llvm::ArrayRef<llvm::StringRef> names();
/// A number as a factor, rounded to nine places; nothing when it is negative
/// or too large.
std::optional<int64_t> fromDouble(double value);
/// The shortest decimal.
std::string format(int64_t factor);
/// `value` times `factor`, rounded; `most` when it is more.
inline int64_t apply(int64_t value, int64_t factor, int64_t most) {
  if (factor == unit)
    return value;
  __int128 product = (__int128(value) * factor + unit / 2) / unit;
  return product > most ? most : static_cast<int64_t>(product);
}
} // namespace scaling

/// What the time of a group follows from.
enum class GroupRule : uint8_t { Sum, Max };

/// The costs of a program, as far as they are given; see Durations and
/// MemoryModel for the rest. A later setting overrides earlier ones.
struct CostModel {
  std::vector<CostSetting> actions;
  /// With any, what an action or group takes follows from its nodes, where it
  /// has some.
  std::vector<NodeCost> nodes;
  std::optional<Time> overlap; ///< Of a whole group; else the rule says it.
  GroupRule groupRule = GroupRule::Sum;
  Time groupFactor =
      cost::unit; ///< The sum, or the largest, is taken so often.

  std::optional<Time> latency; ///< Of an edge between ranks.
  // By edge, which the stage at its lower end names; for both directions.
  std::vector<StageSetting> latencies;  ///< Times.
  std::vector<StageSetting> bandwidths; ///< Amounts a unit of time, above 0.
  std::vector<StageSetting> bytes;      ///< Amounts, of a message.

  std::vector<CostSetting> memory;
  std::vector<StageSetting> staticMemory;
  /// The most that a rank may hold: one for all ranks, or for each rank.
  std::vector<Amount> memoryLimits;

  std::vector<MicrobatchScale> scales;

  bool hasOwnRule() const {
    return groupRule != GroupRule::Sum || groupFactor != cost::unit;
  }
  /// Whether anything is said about the time of messages.
  bool hasMessageTimes() const {
    return latency || !latencies.empty() || !bandwidths.empty();
  }
  bool empty() const {
    return actions.empty() && nodes.empty() && !overlap && !hasOwnRule() &&
           !hasMessageTimes() && bytes.empty() && memory.empty() &&
           staticMemory.empty() && memoryLimits.empty() && scales.empty();
  }
};

} // namespace ppcc
