// Finds the shortest cycle of things that wait for each other.
#pragma once

#include "ppcc/Support/Id.h"
#include "ppcc/Support/LLVM.h"

namespace ppcc {

/// `from` cannot go on before `to` does: numbers of ranks, or of anything else
/// that waits.
struct Wait {
  uint32_t from, to;
};

/// The waits of the shortest cycle, as positions in `waits`: each ends where
/// the next begins, the smallest `from` first. A near-shortest cycle where
/// there are very many waits. `waits` are sorted by `from`, and everything
/// waited for waits itself. Empty for no waits.
std::vector<uint32_t> shortestCycle(ArrayRef<Wait> waits);

/// Hops of a cycle that a message shows.
inline constexpr size_t maxHops = 12;

/// `1 and 2`, `0, 1 and 2`; of more than maxHops ranks the first ones.
std::string rankList(ArrayRef<RankId> ranks);

} // namespace ppcc
