// Programs in which what repeats itself is written once.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

/// The loops of one rank.
ArrayRef<Loop> loopsOf(const Program &program, RankId rank);

/// Calls `visit(rows, advance)` for the rows of a rank, those of a loop once in
/// each turn; `advance` is what it adds to the microbatches that they have.
template <class Visit>
void forEachStretch(const Program &program, RankId rank, Visit visit) {
  ActionId row = program.begin(rank);
  for (const Loop &loop : loopsOf(program, rank)) {
    visit(RowRange{row, loop.begin}, uint32_t(0));
    for (uint32_t turn = 0; turn != loop.count; ++turn)
      visit(RowRange{loop.begin, loop.end}, turn * uint32_t(loop.advance));
    row = loop.end;
  }
  visit(RowRange{row, program.end(rank)}, uint32_t(0));
}

/// The actions that run, loops counted as often as they turn.
uint64_t flatSize(const Program &program);

/// The program with each loop written out. flatSize() must fit an ActionId.
/// O(flatSize()).
Program unrolled(const Program &program);

} // namespace ppcc
