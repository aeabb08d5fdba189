#include "ppcc/Proof/Memory.h"

using namespace ppcc;
using namespace ppcc::proof;

Holdings ppcc::proof::activationsOf(const Template &program) {
  Holdings result;
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
                                         ArrayRef<Holding> holdings) {
  std::vector<Affine> peaks{Affine{}};
  Affine held;
  for (size_t begin = 0, end; begin != rows.size(); begin = end) {
    uint32_t window = rows[begin].window;
    // In a turn, from its begin on.
    Affine inTurn, most;
    for (end = begin; end == begin ||
                      (end != rows.size() &&
                       (rows[end].joined ||
                        (rows[end].window == window && window != noWindow)));) {
      size_t item = end;
      do
        inTurn.c = (inTurn + holdings[end].takes).c;
      while (++end != rows.size() && rows[end].joined);
      most.c = std::max(most.c, inTurn.c);
      for (; item != end; ++item)
        inTurn = inTurn - holdings[item].gives;
    }
    // The first and the last turn hold the most.
    peaks.push_back(held + most);
    held = held + inTurn;
    if (window == noWindow)
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
  auto most = llvm::max_element(functions, [](Affine a, Affine b) {
    return std::pair(a.c, a.n) < std::pair(b.c, b.n);
  });
  bool isLargest =
      most != functions.end() && llvm::all_of(functions, [&](Affine other) {
        return isNatural(*most - other, last);
      });
  return isLargest ? std::optional(*most) : std::nullopt;
}
