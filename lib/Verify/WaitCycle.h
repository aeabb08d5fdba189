// Finds the shortest circle of ranks that wait for each other.
#pragma once

#include "ppcc/Support/Id.h"

#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace ppcc {

/// A rank that cannot go on: its row `blocked` needs the row `needed` of `on`.
struct Wait {
  RankId rank;
  ActionId blocked;
  RankId on;
  ActionId needed;
};

/// The waits of the shortest circle, each `on` the rank of the next, the
/// smallest rank first; a near-shortest one where there are very many ranks.
/// `waits` are sorted by rank, and every rank waited for waits itself. Empty
/// for no waits.
std::vector<Wait> shortestCircle(llvm::ArrayRef<Wait> waits);

} // namespace ppcc
