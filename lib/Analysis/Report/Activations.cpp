// Counts activations.
#include "ppcc/Analysis/Report/Activations.h"

using namespace ppcc;

uint32_t ppcc::peakActivations(const Program &program, RankId rank) {
  int64_t held = 0, peak = 0;
  for (RowRange item : program.items(rank)) {
    for (ActionId row : item)
      held += beginsActivation(program.kindOf(row));
    peak = std::max(peak, held);
    for (ActionId row : item)
      held -= endsActivation(program.kindOf(row));
  }
  return uint32_t(peak);
}
