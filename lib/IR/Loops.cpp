// Writes loops out.
#include "ppcc/IR/Loops.h"

using namespace ppcc;

ArrayRef<Loop> ppcc::loopsOf(const Program &program, RankId rank) {
  auto before = [&](ActionId row) {
    auto found = llvm::partition_point(
        program.loops(), [&](const Loop &loop) { return loop.begin < row; });
    return size_t(found - program.loops().begin());
  };
  size_t first = before(program.begin(rank));
  return ArrayRef(program.loops())
      .slice(first, before(program.end(rank)) - first);
}

uint64_t ppcc::unrolledSize(const Program &program) {
  uint64_t size = program.size();
  for (const Loop &loop : program.loops())
    size += uint64_t(loop.count - 1) * (loop.end.value - loop.begin.value);
  return size;
}

Program ppcc::unrolled(const Program &program) {
  Rows result;
  result.reserve(unrolledSize(program));
  for (RankId rank : program.ranks()) {
    result.beginRank();
    forEachUnrolledRange(program, rank, [&](RowRange rows, uint32_t advance) {
      for (ActionId row : rows) {
        Action action = program[row];
        if (action.hasMicrobatch())
          action.microbatch += advance;
        result.append(action);
      }
    });
  }
  return program.withEquivalentRows(std::move(result));
}
