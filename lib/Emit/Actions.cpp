// Writes one line a rank, one cell an action.
#include "Cells.h"
#include "Emitters.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;

/// Whether an action of the item is of one of the microbatches that are shown.
static bool shows(const PrintOptions &print, const Program &program,
                  ActionId begin, ActionId end) {
  if (!print.microbatches)
    return true;
  auto [first, last] = *print.microbatches;
  for (uint32_t row = begin.value; row != end.value; ++row)
    if (uint32_t microbatch = program[ActionId(row)].microbatch;
        microbatch >= first && microbatch < last)
      return true;
  return false;
}

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
      if (!shows(print, program, begin, end))
        return;
      writer.put(' ');
      putItem(writer, program, begin, end, calls.of(begin, end));
    });
    writer.put('\n');
  }
  return true;
}
