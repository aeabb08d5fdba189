// The passes that judge programs.
#pragma once

#include "ppcc/IR/Transport.h"
#include "ppcc/Pass/PassOptions.h"

namespace ppcc {

PassFactory
verifyCompleteness(); ///< Each stage does its work once for each microbatch.
PassFactory verifyPlacement(); ///< Each action is on the rank of its stage.
PassFactory verifyStages();    ///< No stage stands apart from the others.
PassFactory verifyOrder(); ///< On its rank an action stands behind those of its
                           ///< stage that it needs.
PassFactory
verifyGroups(); ///< The members of an overlap group need nothing of each other.
PassFactory verifyDependences(); ///< No rank waits for itself along the data.
PassFactory verifyCollectives(); ///< All members of a collective join it, in
                                 ///< one order on every rank.
PassFactory verifyMoves();       ///< No two actions move the same away.
PassFactory
verifyComm(); ///< Each edge between ranks has a send and a receive, in place.
PassFactory verifyMatching();   ///< Two ranks send and receive the messages
                                ///< between them in one order.
PassFactory verifyTransport();  ///< No rank waits for itself on a transport;
                                ///< the option `transport` says which.
PassFactory verifyBuffers();    ///< No more receives of an edge wait for their
                                ///< readers than the option `prefetch` says.
PassFactory verifyPreconnect(); ///< Ranks that exchange messages have connected
                                ///< before, where any have.
PassFactory verifyMemory();     ///< No rank holds more memory than it may; the
                                ///< option `transport` says what it runs on.

/// These with their options.
std::unique_ptr<Pass> verifyTransport(std::vector<Transport> transports);
std::unique_ptr<Pass> verifyBuffers(uint32_t prefetch);
std::unique_ptr<Pass> verifyMemory(Transport transport);

} // namespace ppcc
