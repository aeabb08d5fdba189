#include "Memory.h"

#include "ppcc/Support/CheckedInt.h"

using namespace ppcc;
using proof::Affine;

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
                      const proof::MemoryDeltas &memoryDeltas,
                      const proof::Costs &costs) {
  Excess excess;
  for (uint32_t rank = 0; rank != program.ranks.size(); ++rank)
    for (Affine peak :
         proof::peaksOf(program.ranks[rank], memoryDeltas[rank])) {
      Affine left = memoryBudgetOf(costs, rank) - peak;
      bool fits = left.c >= 0;
      int64_t n = fits && left.n < 0    ? left.c / -left.n + 1
                  : !fits && left.n > 0 ? -*floorDiv(left.c, left.n)
                                        : 0;
      if (n > 0 && n <= program.last)
        excess.splitAt = excess.splitAt == 0 ? n : std::min(excess.splitAt, n);
      if (!fits && left.n <= 0 &&
          (!excess.over ||
           std::pair(peak.n, peak.c) >
               std::pair(excess.over->second.n, excess.over->second.c)))
        excess.over = {rank, peak};
    }
  return excess;
}
