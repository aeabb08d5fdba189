// Counts activations.
#include "ppcc/Analysis/Activations.h"

using namespace ppcc;

uint32_t ppcc::peakActivations(const Program &program, RankId rank) {
  int64_t held = 0, most = 0;
  for (ActionId begin = program.begin(rank), end; begin != program.end(rank);
       begin = end) {
    end = program.groupEnd(begin, rank);
    for (ActionId row : RowRange{begin, end})
      held += beginsActivation(program.kindOf(row));
    most = std::max(most, held);
    for (ActionId row : RowRange{begin, end})
      held -= endsActivation(program.kindOf(row));
  }
  return uint32_t(most);
}
