// Which ranks talk to each other.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

/// Each two ranks between which the program sends or receives, with the first
/// send or receive of theirs. Rows whose other end is on their own rank are
/// passed over. O(actions).
std::map<RankPair, ActionId> communicatingPairs(const Program &program);

} // namespace ppcc
