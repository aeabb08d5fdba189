#include "ppcc/Proof/Costs.h"

using namespace ppcc;
using namespace ppcc::proof;

/// No time, and no amount, is larger; so the sum of some fits. Scales make no
/// more of an amount than the second.
static constexpr __int128 maxCost = INT64_MAX / 4;
static constexpr int64_t maxScaledMemory = 1'000'000'000'000 * memoryUnit;

static int64_t checked(__int128 value) {
  if (value > maxCost || value < -maxCost)
    throw std::overflow_error("cost");
  return static_cast<int64_t>(value);
}

/// `value` times a factor, rounded.
static int64_t scaled(__int128 value, int64_t factor) {
  return factor == timeUnit
             ? checked(value)
             : checked((value * factor + timeUnit / 2) / timeUnit);
}

namespace {

/// Finds values by stage, and factors by microbatch.
class CostLookup {
public:
  CostLookup(const Template &program, const Costs &costs)
      : program(program), costs(costs) {
    for (const Pipe &pipe : program.head->pipes) {
      firstStage.push_back(stages);
      stages += pipe.numStages();
    }
    for (const MicrobatchRange &range : program.pipes) {
      firstMicrobatch.push_back(microbatches - range.first.c);
      microbatches += range.count.c;
    }
    isUniform = program.last == 0 ||
                (costs.timeScales.empty() && costs.memoryScales.empty());
  }

  /// Whether costs are the same in all programs, or there is one.
  bool isUniform;

  std::optional<int64_t> of(const std::map<uint32_t, Costs::Values> &values,
                            const Row &row) const {
    auto found = values.find(row.kind.value);
    if (found == values.end())
      return std::nullopt;
    size_t at = found->second.size() == 1
                    ? 0
                    : firstStage[row.pipe.value] + row.stage.value;
    return at < found->second.size() ? std::optional(found->second[at])
                                     : std::nullopt;
  }
  int64_t factor(const Costs::Values &scales, const Row &row) const {
    int64_t at = firstMicrobatch[row.pipe.value] + row.microbatch.c;
    bool isThere =
        row.microbatch != noMicrobatch && at >= 0 && size_t(at) < scales.size();
    return isThere ? scales[at] : timeUnit;
  }
  std::optional<int64_t> timeOf(const Row &row) const {
    auto time = of(costs.times, row);
    auto scales = costs.timeScales.find(row.kind.value);
    return time && scales != costs.timeScales.end()
               ? scaled(*time, factor(scales->second, row))
               : time;
  }

private:
  const Template &program;
  const Costs &costs;
  std::vector<size_t> firstStage;       ///< By pipe.
  std::vector<int64_t> firstMicrobatch; ///< The same, less its first number.
  size_t stages = 0;
  int64_t microbatches = 0;
};

} // namespace

int64_t ppcc::proof::timeOf(const Costs &costs, PipeId pipe, StageId from,
                            StageId to) {
  auto found = costs.links.find({pipe.value, from.value, to.value});
  return found == costs.links.end() ? 0 : found->second;
}

std::optional<RowDurations> ppcc::proof::rowDurationsOf(const Template &program,
                                                        const Costs &costs) {
  CostLookup table(program, costs);
  if (!table.isUniform)
    return std::nullopt;
  RowDurations result;
  for (const auto &rows : program.ranks) {
    auto &ofRank = result.emplace_back(rows.size());
    for (size_t begin = 0, end; begin != rows.size(); begin = end) {
      std::vector<Costs::Member> members;
      __int128 sum = 0, largest = 0;
      for (end = begin;
           end == begin || (end != rows.size() && rows[end].joined); ++end) {
        const Row &row = rows[end];
        const KindInfo &info = program.head->kinds[row.kind];
        std::optional<int64_t> time =
            info.isSend()   ? timeOf(costs, row.pipe, row.stage, row.peer)
            : info.isRecv() ? timeOf(costs, row.pipe, row.peer, row.stage)
                            : table.timeOf(row);
        if (!time)
          return std::nullopt;
        sum += *time;
        largest = std::max<__int128>(largest, *time);
        members.push_back({row.kind.value, row.pipe.value, row.stage.value});
      }
      auto known = costs.groups.find(members);
      ofRank[begin] =
          members.size() == 1           ? checked(sum)
          : known != costs.groups.end() ? known->second
          : costs.group == Costs::Group::Fixed
              ? costs.factor
              : scaled(costs.group == Costs::Group::Max ? largest : sum,
                       costs.factor);
    }
  }
  return result;
}

std::optional<MemoryDeltas> ppcc::proof::memoryDeltasOf(const Template &program,
                                                        const Costs &costs) {
  CostLookup table(program, costs);
  const KindTable &kinds = program.head->kinds;
  // What restores others, or runs beside them, follows no order of rows.
  for (KindId kind : kinds.ids())
    if (kinds[kind].isDeclared() &&
        (kinds[kind].restores || costs.memory.count(kind.value)))
      return std::nullopt;
  if (!table.isUniform)
    return std::nullopt;
  auto own = [&](const Row &row) {
    int64_t amount = table.of(costs.memory, row).value_or(0);
    amount = amount == Costs::remainder ? 0 : amount;
    int64_t factor = table.factor(costs.memoryScales, row);
    if (factor == timeUnit)
      return checked(amount);
    __int128 size = amount < 0 ? -__int128(amount) : amount;
    size = std::min<__int128>((size * factor + timeUnit / 2) / timeUnit,
                              maxScaledMemory);
    return checked(amount < 0 ? -size : size);
  };
  auto freesRemainder = [&](const Row &row) {
    return (kinds[row.kind].defines & slot::WeightGrad) &&
           table.of(costs.memory, row).value_or(Costs::remainder) ==
               Costs::remainder;
  };
  // What the action that makes a slot leaves to one that gives back the rest:
  // of each microbatch the same, where there are several programs.
  std::map<std::array<int64_t, 4>, int64_t> left;
  auto keyOf = [&](const Row &row, uint8_t slotBit) {
    return std::array<int64_t, 4>{row.pipe.value, row.stage.value,
                                  program.last == 0 ? row.microbatch.c : 0,
                                  slotBit};
  };
  for (const auto &rows : program.ranks)
    for (const Row &row : rows) {
      const KindInfo &info = kinds[row.kind];
      if (!info.isCompute() || freesRemainder(row))
        continue;
      for (uint8_t slotBit : slotsIn(info.defines)) {
        int64_t amount = slotBit == info.mainSlot() ? own(row) : 0;
        auto [known, isNew] = left.try_emplace(keyOf(row, slotBit), amount);
        if (known->second != amount)
          return std::nullopt;
      }
    }
  MemoryDeltas result;
  for (const auto &rows : program.ranks) {
    auto &ofRank = result.emplace_back();
    for (const Row &row : rows) {
      const KindInfo &info = kinds[row.kind];
      MemoryDelta holding;
      if (info.isCompute()) {
        int64_t amount = own(row);
        holding = {std::max<int64_t>(amount, 0), -std::min<int64_t>(amount, 0)};
        if (freesRemainder(row)) {
          __int128 frees = holding.allocates;
          for (uint8_t slotBit : slotsIn(slot::crossStage & ~info.defines))
            frees += left[keyOf(row, slotBit)];
          holding.frees = checked(frees);
        }
      }
      ofRank.push_back(holding);
    }
  }
  return result;
}

int64_t ppcc::proof::memoryBudgetOf(const Costs &costs, uint32_t rank) {
  auto of = [&](const Costs::Values &values) -> __int128 {
    return values.empty()       ? 0
           : values.size() == 1 ? values.front()
                                : values.at(rank);
  };
  return checked(of(costs.limits) - of(costs.staticMemory));
}
