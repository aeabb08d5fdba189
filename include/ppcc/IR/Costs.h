// What a schedule says about time and memory.
#pragma once

#include "ppcc/Support/Decimal.h"
#include "ppcc/Support/Id.h"
#include "ppcc/Support/LLVM.h"

#include <initializer_list>

namespace ppcc {

class KindTable;

/// A time in units of 10^-9 of the unit that the user thinks in.
using Time = int64_t;

namespace cost {
inline constexpr Time unit = 1'000'000'000;
/// The largest cost of one action, group or message.
inline constexpr Time max = 1'000'000'000 * unit;
inline constexpr decimal::Scale scale{9, max};

/// The decimal `text`, like `2` or `0.05`, of at most nine places and at most
/// the largest cost.
std::optional<Time> parse(StringRef text);
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

/// The shortest decimal.
std::string format(decimal::Sum amount);
} // namespace amount

/// What times and amounts are in, for people: `units ms, bytes;` of a model or
/// cluster says it.
struct Units {
  StringRef ofTime = {}; ///< `s`, `ms`, `us`, or empty.
  bool inBytes = false;

  /// What `units` takes.
  static ArrayRef<StringRef> allWords();
  /// Takes one of them; false where the other kind of word must follow.
  bool take(StringRef word);
  /// `ms`, `bytes`: what has been taken.
  SmallVector<StringRef, 2> words() const;

  /// `2.10 s`, `62.4 ms`: three digits; six where there is no unit.
  std::string time(decimal::Sum value) const;
  /// `111 GiB`, likewise.
  std::string memory(decimal::Sum value) const;
};

namespace scaling {
inline constexpr int64_t unit = 1'000'000'000;
inline constexpr int64_t max = 1'000'000 * unit;
inline constexpr decimal::Scale decimals{9, max};

/// `value` times `factor`, rounded; `most` when it is more.
inline int64_t apply(int64_t value, int64_t factor, int64_t limit) {
  if (factor == unit)
    return value;
  __int128 product = (__int128(value) * factor + unit / 2) / unit;
  return product > limit ? limit : static_cast<int64_t>(product);
}
} // namespace scaling

/// A number in units of its last place, rounded; exact for decimals of up to
/// nine places below four million. Nothing when its absolute value is too
/// large, or it is none.
std::optional<int64_t> fromDouble(double value, decimal::Scale scale);

/// A row of the table of costs.
enum class Cost : uint8_t {
#define COST(Name, Item, Subject, Number, Spread, Owner) Name,
#include "ppcc/IR/Costs.def"
};

/// What a number of a cost may be.
struct CostNumber {
  decimal::Scale scale;
  StringRef description; ///< For messages.
  bool isSigned = false, isPositive = false;

  /// Any number that JSON knows, rounded to the last place; nothing for what is
  /// none, or not allowed.
  std::optional<int64_t> parse(StringRef text) const {
    auto value = decimal::round(text, scale);
    return value && (isSigned || *value >= isPositive) ? value : std::nullopt;
  }
  /// The shortest decimal.
  std::string format(int64_t value) const {
    return decimal::format(value, scale.places);
  }
};

/// Between what a cost may differ.
enum class CostGranularity : uint8_t {
  One,
  Stages,
  Links,
  Ranks,
  Microbatches
};

/// Who says a cost.
enum class CostOwner : uint8_t { Model, Cluster };

/// See Costs.def.
struct CostRow {
  Cost what;
  StringRef item, subject;
  const CostNumber &number;
  CostGranularity granularity;
  CostOwner owner;

  /// Whether it may differ between stages.
  bool isByStage() const {
    return granularity == CostGranularity::Stages ||
           granularity == CostGranularity::Links;
  }
  bool isOfKind() const { return subject == "<kind>"; }
  bool isOfNode() const { return subject == "<node>"; }
};

ArrayRef<CostRow> costRows();
inline const CostRow &rowOf(Cost what) { return costRows()[size_t(what)]; }
/// The items, each once.
ArrayRef<StringRef> costItems();
/// Whether it is a word of the table, which can be no action's name.
bool isCostWord(StringRef word);

/// What is said of one thing.
struct CostSetting {
  Cost what;
  KindId kind{};                ///< Of an action or a node.
  std::string node{};           ///< The name of a node.
  std::optional<PipeId> pipe{}; ///< Of this pipe only; else of every pipe.
  /// One for all, or for each of what the costs differ between: the stages of
  /// the pipe, the ranks, the microbatches of one pipe after another.
  std::vector<int64_t> values{};
  /// Of messages from the first of these ranks to the second only.
  std::optional<std::pair<RankId, RankId>> link{};
  /// Of a declared action: so often what the F of the stage takes, which the
  /// values follow.
  std::optional<int64_t> forwardMultiple{};

  bool isPerKind() const {
    return rowOf(what).isOfKind() || rowOf(what).isOfNode();
  }
};

/// What a subject of an item names, without values; nothing when there is no
/// such thing.
std::optional<CostSetting> findCost(StringRef item, StringRef subject,
                                    const KindTable &kinds);
/// The subjects that an item has, nodes left out.
std::vector<StringRef> costSubjects(StringRef item, const KindTable &kinds);
/// The subject of a setting, as in `F`, `F.mlp` or `static`.
std::string subjectOf(const CostSetting &setting, const KindTable &kinds);

/// The costs of a program, as far as they are given; see Durations and
/// MemoryModel for the rest. A later setting overrides earlier ones.
struct CostModel {
  std::vector<CostSetting> settings;

  /// One value, for all.
  void add(Cost what, int64_t value) { add(what, KindId(), value); }
  void add(Cost what, KindId kind, int64_t value) {
    settings.push_back({what, kind, {}, {}, {value}});
  }

  /// Lets what is given in forwards follow what F takes in each of the pipes.
  /// O(settings * those in forwards).
  void resolveForwardMultiples(const KindTable &kinds, size_t numPipes);
  /// Whether the amounts that built-in actions take are given; else F takes 1.
  bool hasMemoryCosts(const KindTable &kinds) const;

  auto of(Cost what) const {
    return llvm::make_filter_range(
        settings,
        [what](const CostSetting &setting) { return setting.what == what; });
  }
  /// The one that overrides the others; null when there is none.
  const CostSetting *last(std::initializer_list<Cost> of) const;
  bool has(std::initializer_list<Cost> of) const { return last(of); }
  /// Of a group: the time of whole groups, or a rule; null for the sum of its
  /// members.
  const CostSetting *group() const {
    return last({Cost::Overlap, Cost::GroupSum, Cost::GroupMax});
  }
  /// Whether anything is said about the time of messages.
  bool hasMessageTimes() const { return has({Cost::Latency, Cost::Bandwidth}); }
  /// Those that no later one overrides, in the order of the table, kinds,
  /// nodes, pipes and links; what is said of all pipes stands first.
  /// O(settings * log settings).
  std::vector<const CostSetting *> inEffect(size_t numPipes) const;
};

} // namespace ppcc
