#include "ppcc/Proof/Memory.h"

using namespace ppcc;
using namespace ppcc::proof;

MemoryDeltas ppcc::proof::activationsOf(const Template &program) {
  MemoryDeltas result;
  for (const auto &rows : program.ranks) {
    auto &ofRank = result.emplace_back();
    for (const Row &row : rows) {
      const KindInfo &info = program.head->kinds[row.kind];
      auto does = [&](uint8_t slotBit) {
        return info.isCompute() && (info.defines & slotBit);
      };
      ofRank.push_back({does(slot::Output), does(slot::WeightGrad)});
    }
  }
  return result;
}

std::vector<Affine> ppcc::proof::peaksOf(ArrayRef<Row> rows,
                                         ArrayRef<MemoryDelta> memoryDeltas) {
  std::vector<Affine> peaks{Affine{}};
  Affine held;
  for (size_t begin = 0, end; begin != rows.size(); begin = end) {
    uint32_t loop = rows[begin].loop;
    // In an iteration, from its begin on.
    Affine inTurn, peak;
    for (end = begin;
         end == begin ||
         (end != rows.size() &&
          (rows[end].joined || (rows[end].loop == loop && loop != noLoop)));) {
      size_t item = end;
      do
        inTurn.c = (inTurn + memoryDeltas[end].allocates).c;
      while (++end != rows.size() && rows[end].joined);
      peak.c = std::max(peak.c, inTurn.c);
      for (; item != end; ++item)
        inTurn = inTurn - memoryDeltas[item].frees;
    }
    // The first and the last iteration hold the most.
    peaks.push_back(held + peak);
    held = held + inTurn;
    if (loop == noLoop)
      continue;
    Affine others{0, inTurn.c, 0};
    peaks.push_back(peaks.back() + others);
    held = held + others;
  }
  return peaks;
}

std::optional<Affine> ppcc::proof::largestOf(ArrayRef<Affine> functions,
                                             int64_t last) {
  // It is so in the first program, and of those that are by growth.
  auto largest = llvm::max_element(functions, [](Affine a, Affine b) {
    return std::pair(a.c, a.n) < std::pair(b.c, b.n);
  });
  bool isLargest =
      largest != functions.end() && llvm::all_of(functions, [&](Affine other) {
        return isNonNegative(*largest - other, last);
      });
  return isLargest ? std::optional(*largest) : std::nullopt;
}
