// Which ranks talk to each other.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

/// Two ranks that exchange messages, and the first send or receive of theirs.
struct TalkingPair {
  RankPair ranks;
  ActionId first;
};

/// Each two ranks between which the program sends or receives, sorted. Rows
/// whose other end is on their own rank are passed over. O(actions).
std::vector<TalkingPair> talkingPairs(const Program &program);

} // namespace ppcc
