// Writes one line a rank, one cell an action.
#include "Cells.h"
#include "Emitters.h"

using namespace ppcc;

void ppcc::emitActions(const Program &program, raw_ostream &out,
                       EmitContext &context) {
  Writer writer(out);
  putRanks(writer, program, context.options.print, [&](RankId rank) {
    return [&, calls = CallNames(program, rank)](RowRange item) mutable {
      writer.put(' ');
      putItem(writer, program, item, calls.of(item.from, item.to));
    };
  });
}
