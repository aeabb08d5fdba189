// Actions and groups as cells of text: `0F3`, `(0F3;7B1)OVERLAP_F_B`,
// `send_forward_recv_backward[0SEND_F3;0RECV_B0]`.
#pragma once

#include "ppcc/Emit/Writer.h"

#include "ppcc/IR/Calls.h"
#include "ppcc/IR/PrintOptions.h"

namespace ppcc {

/// Whether a row is of one of the `microbatches`, from the first up to, not
/// including, the second.
inline bool holdsMicrobatch(const Program &program, RowRange rows,
                            std::pair<uint32_t, uint32_t> microbatches) {
  for (ActionId row : rows)
    if (uint32_t microbatch = program[row].microbatch;
        microbatch >= microbatches.first && microbatch < microbatches.second)
      return true;
  return false;
}

/// Writes an action or group; `call` is its name from CallNames.
inline void putItem(Writer &writer, const Program &program, RowRange item,
                    StringRef call) {
  if (item.size() == 1 && call.empty())
    return writer.cell(program, item.from);
  writer.put(call);
  for (ActionId row : item) {
    writer.put(row != item.from ? ';' : call.empty() ? '(' : '[');
    writer.cell(program, row);
  }
  if (!call.empty())
    return writer.put(']');
  writer.put(")OVERLAP");
  for (ActionId row : item)
    writer.put('_', program.kindOf(row).mnemonic);
}

/// Writes a line `rank N:` for each rank that is shown. `begin(rank)` gives
/// what is called with each of its items of which something is shown.
template <class Begin>
void putRanks(Writer &writer, const Program &program, const PrintOptions &print,
              Begin begin) {
  for (RankId rank : program.ranks()) {
    if (!print.ranks.empty() && !llvm::is_contained(print.ranks, rank))
      continue;
    writer.put("rank ", rank, ':');
    auto put = begin(rank);
    for (RowRange item : program.items(rank))
      if (!print.microbatches ||
          holdsMicrobatch(program, item, *print.microbatches))
        put(item);
    writer.put('\n');
  }
}

} // namespace ppcc
