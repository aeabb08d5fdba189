// Writes one line a rank, one cell an action.
#include "Cells.h"
#include "Emitters.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;

bool ppcc::emitActions(const Program &program, llvm::raw_ostream &out,
                       EmitContext &context) {
  const PrintOptions &print = context.options.print;
  Writer writer(out);
  for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
    if (!print.ranks.empty() && !llvm::is_contained(print.ranks, RankId(rank)))
      continue;
    writer.put("rank ");
    writer.number(rank);
    writer.put(':');
    CallNames calls(program, RankId(rank));
    forEachItem(program, RankId(rank), [&](ActionId begin, ActionId end) {
      if (print.microbatches &&
          !holdsMicrobatch(program, begin, end, *print.microbatches))
        return;
      writer.put(' ');
      putItem(writer, program, begin, end, calls.of(begin, end));
    });
    writer.put('\n');
  }
  return true;
}
