// How many layers each stage gets.
#include "ppcc/Synthesis/Partition.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace ppcc;
using namespace ppcc::synthesis;

Partition synthesis::evenPartition(uint32_t layers, uint32_t stages) {
  Partition even(stages, layers / stages);
  for (uint32_t stage = 0; stage != layers % stages; ++stage)
    ++even[stage];
  return even;
}

std::vector<Valued> synthesis::searchPartitions(
    uint32_t layers, uint32_t stages, unsigned most,
    llvm::function_ref<std::optional<Time>(const Partition &)> valueOf) {
  constexpr size_t mostKept = 3;
  std::vector<Valued> best;
  std::set<Partition> seen;
  auto isBetter = [&](const Partition &layers) {
    if (seen.size() == most || !seen.insert(layers).second)
      return false;
    auto value = valueOf(layers);
    if (!value)
      return false;
    bool first = best.empty() || *value < best.front().value;
    auto place = llvm::upper_bound(best, *value, [](Time v, const Valued &one) {
      return v < one.value;
    });
    best.insert(place, {layers, *value});
    if (best.size() > mostKept)
      best.pop_back();
    return first;
  };
  Partition even = evenPartition(layers, stages);
  isBetter(even);
  // From the best so far a layer goes, or several, from one stage to another;
  // the stages between hand on as many.
  Partition from = even;
  for (bool goesOn = true; goesOn;) {
    goesOn = false;
    for (uint32_t count = 1; count <= 2; ++count)
      for (uint32_t distance = 1; distance < stages; ++distance)
        for (uint32_t stage = 0; stage + distance < stages; ++stage)
          for (bool isUp : {true, false}) {
            Partition next = from;
            uint32_t &giver = next[isUp ? stage : stage + distance],
                     &taker = next[isUp ? stage + distance : stage];
            if (giver <= count)
              continue;
            giver -= count;
            taker += count;
            if (isBetter(next)) {
              from = std::move(next);
              goesOn = true;
            }
          }
  }
  return best;
}
