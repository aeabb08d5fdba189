// Writes one line a rank, one cell an action.
#include "Cells.h"
#include "Emitters.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;

bool ppcc::emitActions(const Program &program, llvm::raw_ostream &out,
                       EmitContext &context) {
  const PrintOptions &print = context.options.print;
  Writer writer(out);
  for (RankId rank : program.ranks()) {
    if (!print.ranks.empty() && !llvm::is_contained(print.ranks, rank))
      continue;
    writer.put("rank ");
    writer.put(rank.value);
    writer.put(':');
    CallNames calls(program, rank);
    forEachItem(program, rank, [&](ActionId begin, ActionId end) {
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
