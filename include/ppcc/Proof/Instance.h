// One program of a template.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Proof/Template.h"

namespace ppcc::proof {

/// The rows of n.
__int128 numRows(const Template &family, int64_t n);

/// Puts the rows of n, and the microbatches of its pipes, into a program that
/// has a head and no rows; there are few enough to keep. What does not fit, or
/// nothing. O(actions).
std::string instantiate(const Template &family, int64_t n, Program &program);

/// Puts rows with loops, and the microbatches of its pipes, into a program that
/// has a head and no rows, if they stand for the same actions as the rows of n.
/// What does not fit, or nothing. O(rows of both), where loops and loops have
/// a common multiple.
std::string instantiate(const Template &family, int64_t n, Rows rolled,
                        Program &program);

/// Calls `visit(row, iteration)` for the rows of a rank in the program of n.
template <class Visit>
void forEachRow(const std::vector<Row> &rows, int64_t n, Visit visit) {
  for (uint32_t begin = 0, end; begin != rows.size(); begin = end) {
    end = blockEnd(rows, begin);
    int64_t last = rows[begin].loop == noLoop ? 0 : n;
    for (int64_t iteration = 0; iteration <= last; ++iteration)
      for (uint32_t row = begin; row != end; ++row)
        visit(row, iteration);
  }
}

} // namespace ppcc::proof
