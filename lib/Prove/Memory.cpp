#include "Memory.h"

#include "ppcc/Analysis/MemoryCurve.h"
#include "ppcc/Support/CheckedInt.h"

using namespace ppcc;
using proof::Affine;

std::optional<proof::Holdings> ppcc::holdingsOf(const proof::Template &family,
                                                const Program &sample) {
  bool isSingle = family.last == 0;
  if (!isSingle && sample.costs().has({Cost::Scale, Cost::ScaleMemory}))
    return std::nullopt;
  // What restores others, or runs beside them, follows no order of rows.
  if (sample.kinds().hasDeclared() &&
      (llvm::any_of(sample.costs().of(Cost::Memory),
                    [&](const CostSetting &setting) {
                      return sample.kinds()[setting.kind].isDeclared();
                    }) ||
       llvm::any_of(sample.kinds().declaredRows(), [](const KindInfo &info) {
         return info.restores.has_value();
       })))
    return std::nullopt;
  MemoryModel model(sample);
  auto actionOf = [&](const proof::Row &row) {
    Action action{row.kind, row.pipe, row.stage};
    action.microbatch = isSingle ? static_cast<uint32_t>(row.microbatch.c)
                                 : sample.pipe(row.pipe).firstMicrobatch;
    return action;
  };
  // What the action that makes a slot leaves to one that gives back the rest.
  std::map<std::tuple<PipeId, StageId, uint32_t, uint8_t>, Amount> left;
  auto keyOf = [](const Action &action, uint8_t slotBit) {
    return std::tuple(action.pipe, action.stage, action.microbatch, slotBit);
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
        auto [known, isNew] = left.try_emplace(keyOf(action, slotBit), amount);
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
            holding.gives += left[keyOf(action, slotBit)];
        }
      }
      ofRank.push_back(holding);
    }
  }
  return result;
}

std::vector<Amount> ppcc::roomsOf(const Program &program) {
  MemoryModel model(program);
  std::vector<Amount> rooms;
  for (RankId rank : program.ranks())
    rooms.push_back(static_cast<Amount>(
        *model.limitOf(rank) -
        std::min<decimal::Sum>(model.staticOf(rank), 4 * amount::max)));
  return rooms;
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

Excess ppcc::excessOf(const proof::Template &program,
                      const proof::Holdings &holdings, ArrayRef<Amount> rooms) {
  Excess excess;
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
    for (Affine peak : proof::peaksOf(program.ranks[rank], holdings[rank])) {
      Affine left = rooms[rank] - peak;
      bool fits = left.c >= 0;
      int64_t n = fits && left.n < 0    ? left.c / -left.n + 1
                  : !fits && left.n > 0 ? -*floorDiv(left.c, left.n)
                                        : 0;
      if (n > 0 && n <= program.last)
        excess.change = excess.change == 0 ? n : std::min(excess.change, n);
      if (!fits && left.n <= 0 &&
          (!excess.over ||
           std::pair(peak.n, peak.c) >
               std::pair(excess.over->second.n, excess.over->second.c)))
        excess.over = {rank, peak};
    }
  return excess;
}
