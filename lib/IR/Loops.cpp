// Writes loops out.
#include "ppcc/IR/Loops.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;

llvm::ArrayRef<Loop> ppcc::loopsOf(const Program &program, RankId rank) {
  auto before = [&](ActionId row) {
    auto found = llvm::partition_point(
        program.loops(), [&](const Loop &loop) { return loop.begin < row; });
    return static_cast<size_t>(found - program.loops().begin());
  };
  size_t first = before(program.begin(rank));
  return llvm::ArrayRef(program.loops())
      .slice(first, before(program.end(rank)) - first);
}

uint64_t ppcc::flatSize(const Program &program) {
  uint64_t size = program.size();
  for (const Loop &loop : program.loops())
    size += uint64_t(loop.count - 1) * (loop.end.value - loop.begin.value);
  return size;
}

Program ppcc::unrolled(const Program &program) {
  Rows result;
  result.reserve(flatSize(program));
  auto append = [&](ActionId begin, ActionId end, int64_t advance) {
    for (; begin != end; ++begin.value) {
      Action action = program[begin];
      if (action.hasMicrobatch())
        action.microbatch = static_cast<uint32_t>(action.microbatch + advance);
      result.append(action);
    }
  };
  for (RankId rank : program.ranks()) {
    result.beginRank();
    ActionId row = program.begin(rank);
    for (const Loop &loop : loopsOf(program, rank)) {
      append(row, loop.begin, 0);
      for (uint32_t turn = 0; turn != loop.count; ++turn)
        append(loop.begin, loop.end, int64_t(turn) * loop.advance);
      row = loop.end;
    }
    append(row, program.end(rank), 0);
  }
  return program.restated(std::move(result));
}
