// Actions and groups as cells of text: `0F3`, `(0F3;7B1)OVERLAP_F_B`.
#pragma once

#include "Writer.h"

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

/// Writes the action or group of the rows [begin, end).
inline void putItem(Writer &writer, const Program &program, ActionId begin,
                    ActionId end) {
  if (end.value - begin.value == 1) {
    writer.cell(program, program[begin]);
    return;
  }
  for (uint32_t row = begin.value; row != end.value; ++row) {
    writer.put(row == begin.value ? '(' : ';');
    writer.cell(program, program[ActionId(row)]);
  }
  writer.put(")OVERLAP");
  for (uint32_t row = begin.value; row != end.value; ++row) {
    writer.put('_');
    writer.put(program.kindOf(ActionId(row)).letters);
  }
}

} // namespace ppcc
