// Programs in which what repeats itself is written once.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

/// The loops of one rank.
ArrayRef<Loop> loopsOf(const Program &program, RankId rank);

/// Calls `visit(rows, loop)` for the loops of a rank and what stands between
/// them, for which `loop` is null.
template <class Visit>
void forEachSegment(const Program &program, RankId rank, Visit visit) {
  const Loop *none = nullptr;
  ActionId row = program.begin(rank);
  for (const Loop &loop : loopsOf(program, rank)) {
    visit(RowRange{row, loop.begin}, none);
    visit(RowRange{loop.begin, loop.end}, &loop);
    row = loop.end;
  }
  visit(RowRange{row, program.end(rank)}, none);
}

/// Calls `visit(rows, advance)` for the rows of a rank, those of a loop once in
/// each iteration; `advance` is what it adds to the microbatches that they
/// have.
template <class Visit>
void forEachUnrolledRange(const Program &program, RankId rank, Visit visit) {
  forEachSegment(program, rank, [&](RowRange rows, const Loop *loop) {
    for (uint32_t iteration = 0; iteration != (loop ? loop->count : 1);
         ++iteration)
      visit(rows, loop ? iteration * uint32_t(loop->advance) : 0);
  });
}

/// The actions that run, each iteration of a loop counted.
uint64_t unrolledSize(const Program &program);

/// The program with each loop written out. unrolledSize() must fit an ActionId.
/// O(unrolledSize()).
Program unrolled(const Program &program);

} // namespace ppcc
