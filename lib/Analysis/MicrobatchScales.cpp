#include "ppcc/Analysis/MicrobatchScales.h"

#include <algorithm>

using namespace ppcc;

MicrobatchScales::MicrobatchScales(const Program &program) {
  if (program.costs().scales.empty())
    return;
  size_t next = 0;
  for (const Pipe &pipe : program.pipes()) {
    firstOfPipe.push_back(next - pipe.firstMicrobatch);
    next += pipe.numMicrobatches;
  }
  using Of = MicrobatchScale::Of;
  for (const MicrobatchScale &scale : program.costs().scales) {
    Column column = scale.factors.data();
    if (scale.of == Of::All || scale.of == Of::Time) {
      times.resize(program.kinds().size());
      if (scale.kind)
        times[scale.kind->value] = column;
      else
        std::fill(times.begin(), times.end(), column);
    }
    if (scale.of == Of::All || scale.of == Of::Memory)
      memoryColumn = column;
    if (scale.of == Of::All || scale.of == Of::Bytes) {
      bytesColumn = column;
      largestBytes = 0;
      for (int64_t factor : scale.factors)
        largestBytes = std::max(largestBytes, factor);
    }
  }
}

Amount MicrobatchScales::scaledMemory(const Action &action,
                                      Amount amount) const {
  int64_t by = factor(memoryColumn, action);
  return amount < 0 ? -scaling::apply(-amount, by, amount::max)
                    : scaling::apply(amount, by, amount::max);
}
