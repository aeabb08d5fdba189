#include "Memory.h"

#include "ppcc/Analysis/MemoryCurve.h"

#include <map>

using namespace ppcc;

std::optional<proof::Holdings> ppcc::holdingsOf(const proof::Template &family,
                                                const Program &sample) {
  if (sample.costs().has({Cost::Scale, Cost::ScaleMemory}))
    return std::nullopt;
  MemoryModel model(sample);
  auto actionOf = [](const proof::Row &row) {
    return Action{row.kind, row.pipe, row.stage};
  };
  // What the action that makes a slot leaves to one that gives back the rest:
  // by pipe, stage and slot.
  std::map<std::tuple<uint32_t, uint32_t, uint8_t>, Amount> left;
  auto slotOf = [&](const proof::Row &row, uint8_t slotBit) -> Amount & {
    return left[{row.pipe.value, row.stage.value, slotBit}];
  };
  bool isOne = true;
  for (const auto &rows : family.ranks)
    for (const proof::Row &row : rows) {
      const KindInfo &info = sample.kinds()[row.kind];
      Action action = actionOf(row);
      if (!info.isCompute() || model.givesRest(action))
        continue;
      for (uint8_t slotBit : slotsIn(info.defines)) {
        Amount amount = slotBit == info.mainSlot() ? model.of(action) : 0;
        auto [known, isNew] = left.try_emplace(
            {row.pipe.value, row.stage.value, slotBit}, amount);
        isOne &= known->second == amount;
      }
    }
  if (!isOne)
    return std::nullopt;
  proof::Holdings result;
  for (const auto &rows : family.ranks) {
    auto &ofRank = result.emplace_back();
    for (const proof::Row &row : rows) {
      const KindInfo &info = sample.kinds()[row.kind];
      proof::Holding holding;
      if (info.isCompute()) {
        Action action = actionOf(row);
        Amount own = model.of(action);
        holding.takes = std::max<Amount>(own, 0);
        holding.gives = -std::min<Amount>(own, 0);
        if (model.givesRest(action)) {
          holding.gives = holding.takes;
          for (uint8_t slotBit : slotsIn(slot::moving & ~info.defines))
            holding.gives += slotOf(row, slotBit);
        }
      }
      ofRank.push_back(holding);
    }
  }
  return result;
}

std::optional<Amount> ppcc::bytesOf(const Program &program, PipeId pipe,
                                    StageId from, StageId to) {
  const CostModel &costs = program.costs();
  if (costs.has({Cost::Scale, Cost::ScaleBytes}))
    return std::nullopt;
  StageId low = std::min(from, to), high = std::max(from, to);
  for (const CostSetting &setting : llvm::reverse(costs.settings))
    if (setting.what == Cost::Bytes && !setting.link &&
        setting.pipe.value_or(pipe) == pipe)
      return setting.values.size() == 1 ? setting.values.front()
                                        : setting.values[low.value];
  for (const EdgeTensors &edge : program.pipe(pipe).tensors)
    if (edge.from == low && edge.to == high)
      if (auto bytes = edge.bytes(/*isGradient=*/to < from);
          bytes && *bytes <= amount::max / amount::unit)
        return *bytes * amount::unit;
  return std::nullopt;
}
