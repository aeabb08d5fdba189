// The passes that judge programs.
#pragma once

#include "ppcc/IR/Transport.h"
#include "ppcc/Pass/Pass.h"

namespace ppcc {

/// Reports what is wrong with a program, and leaves it as it is.
using Check = void(const Program &program, PassContext &context);

Check verifyCompleteness; ///< Each stage does its work once for each
                          ///< microbatch.
Check verifyPlacement;    ///< Each action is on the rank of its stage.
Check verifyStages;       ///< No stage stands apart from the others.
Check verifyOrder;        ///< On its rank an action stands after those of its
                          ///< stage that it needs.
Check verifyGroups;       ///< The members of an overlap group need nothing of
                          ///< each other.
Check verifyDependences;  ///< No rank waits for itself along the data.
Check verifyCollectives;  ///< All members of a collective join it, in one order
                          ///< on every rank.
Check verifyMoves;        ///< No two actions move the same away, nor what is
                          ///< restored later.
Check verifyComm;         ///< Each edge between ranks has a send and a receive,
                          ///< in place.
Check verifyMatching;     ///< Two ranks send and receive the messages between
                          ///< them in one order.
Check verifyPreconnect;   ///< Ranks that exchange messages have connected
                          ///< before, where any have.

/// Whether several kinds move something away, or restore it: then alone moves
/// may be wrong.
bool mayMoveTwice(const Program &program);

/// No rank waits for itself on the transports.
Pass verifyTransport(std::vector<Transport> transports);
/// No more receives of an edge wait for their readers than `prefetch` says.
Pass verifyBuffers(uint32_t prefetch);
/// No rank holds more memory than it may, on the `transport`.
Pass verifyMemory(Transport transport);
/// What a rank of a dynamic runtime starts of what is ready.
enum class DynamicRule : uint8_t {
  None,
  Hint,  ///< The first of its order after which the rest of that still fits.
  Ready, ///< Whatever fits into its memory.
};
using DynamicRuleName = std::pair<StringRef, DynamicRule>;
inline constexpr DynamicRuleName dynamicRules[] = {
    {"hint", DynamicRule::Hint}, {"ready", DynamicRule::Ready}};
/// No order that a dynamic runtime may take hangs within the memory limits.
Pass verifyDynamic(DynamicRule rule);
/// The part of verifyMemory() that needs no run: what actions restore is no
/// more than what was taken.
void checkRestored(const Program &program, PassContext &context);

} // namespace ppcc
