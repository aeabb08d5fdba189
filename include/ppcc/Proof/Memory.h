// What ranks hold while the programs of a template run.
#pragma once

#include "ppcc/Proof/Template.h"

namespace ppcc::proof {

/// What a row takes when it starts, and gives back when it ends.
struct MemoryDelta {
  int64_t allocates = 0, frees = 0;
};
/// By rank and row.
using MemoryDeltas = std::vector<std::vector<MemoryDelta>>;

/// One for each activation that a row begins or ends.
MemoryDeltas activationsOf(const Template &program);

/// Functions of n the largest of which is the most that a rank holds. The rows
/// of a group take when it starts, and give back when it ends.
std::vector<Affine> peaksOf(ArrayRef<Row> rows,
                            ArrayRef<MemoryDelta> memoryDeltas);

/// The one that is largest for all n in 0..last, if it is one.
std::optional<Affine> largestOf(ArrayRef<Affine> functions, int64_t last);

/// Whether f >= 0 for all n in 0..last.
inline bool isNonNegative(Affine f, int64_t last) {
  return f.c >= 0 && (last == unbounded ? f.n >= 0 : f.at(last) >= 0);
}

} // namespace ppcc::proof
