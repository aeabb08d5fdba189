// Counts activations.
#include "ppcc/Analysis/Activations.h"

using namespace ppcc;

uint32_t ppcc::peakActivations(const Program &program, RankId rank) {
  int64_t held = 0, most = 0;
  for (RowRange item : program.items(rank)) {
    for (ActionId row : item)
      held += beginsActivation(program.kindOf(row));
    most = std::max(most, held);
    for (ActionId row : item)
      held -= endsActivation(program.kindOf(row));
  }
  return uint32_t(most);
}
