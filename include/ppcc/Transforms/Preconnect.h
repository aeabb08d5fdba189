// Finds an order in which ranks open their connections.
#pragma once

#include "ppcc/Pass/Pass.h"

namespace ppcc {

/// The pairs, which are sorted and each there once, in an order in which many
/// connect at the same time. They are dealt to rounds, each to the first in
/// which both ranks are free (a greedy edge colouring: fewer than twice as many
/// rounds as the busiest rank has pairs); round after round, sorted in each. A
/// rank that walks the list from front to back, and meets its peer at each pair
/// that holds it, never waits in a cycle: each waits for an earlier pair only.
/// O(pairs * pairs of the busiest rank / 64).
std::vector<RankPair> connectionOrder(uint32_t numRanks,
                                      ArrayRef<RankPair> pairs);

/// The pass `preconnect`: fills Program::preconnect from the messages.
PassResult preconnect(Program &program, PassContext &context);

} // namespace ppcc
