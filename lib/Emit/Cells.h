// Actions and groups as cells of text: `0F3`, `(0F3;7B1)OVERLAP_F_B`,
// `send_forward_recv_backward[0SEND_F3;0RECV_B0]`.
#pragma once

#include "Writer.h"

#include "ppcc/IR/Calls.h"

namespace ppcc {

/// Calls `visit(begin, end)` for each action or group of a rank, in order.
template <class Visit>
void forEachItem(const Program &program, RankId rank, Visit visit) {
  for (ActionId begin = program.begin(rank); begin != program.end(rank);) {
    ActionId end = program.groupEnd(begin, rank);
    visit(begin, end);
    begin = end;
  }
}

/// Whether an action of the rows [begin, end) is of one of the `microbatches`,
/// from the first up to, not including, the second.
inline bool holdsMicrobatch(const Program &program, ActionId begin,
                            ActionId end,
                            std::pair<uint32_t, uint32_t> microbatches) {
  for (ActionId row : RowRange{begin, end})
    if (uint32_t microbatch = program[row].microbatch;
        microbatch >= microbatches.first && microbatch < microbatches.second)
      return true;
  return false;
}

/// Writes the action or group of the rows [begin, end); `call` is its name from
/// CallNames.
inline void putItem(Writer &writer, const Program &program, ActionId begin,
                    ActionId end, llvm::StringRef call) {
  bool isSingle = end.value - begin.value == 1;
  if (isSingle && call.empty()) {
    writer.cell(program, program[begin]);
    return;
  }
  writer.put(call);
  for (ActionId row : RowRange{begin, end}) {
    writer.put(row.value != begin.value ? ';' : call.empty() ? '(' : '[');
    writer.cell(program, program[row]);
  }
  if (!call.empty()) {
    writer.put(']');
    return;
  }
  writer.put(")OVERLAP");
  for (ActionId row : RowRange{begin, end}) {
    writer.put('_');
    writer.put(program.kindOf(row).letters);
  }
}

} // namespace ppcc
