// Pairs the sends of a program with its receives.
#pragma once

#include "ppcc/Analysis/Index/MessageIndex.h"
#include "ppcc/Pass/Pass.h"

namespace ppcc {

/// The messages of the program, or nothing, and errors were reported, when it
/// is far too short for them.
const MessageIndex *messagesOf(const Program &program, PassContext &context);

/// Whether each send has its receive and each receive its send, both once;
/// reports those that have not. O(actions).
bool checkPairs(const Program &program, const MessageIndex &messages,
                PassContext &context);

/// A send and the receive that stands at its place in the order of its lane.
struct Mismatch {
  ActionId send, recv;
  uint32_t position; ///< Messages before it on its lane.
  Channel lane;
};

/// For each lane whose sends and receives are not in one order, the first place
/// where they part. Takes a program whose messages are paired. O(actions).
std::vector<Mismatch> firstMismatches(const Program &program,
                                      const MessageIndex &messages);

} // namespace ppcc
