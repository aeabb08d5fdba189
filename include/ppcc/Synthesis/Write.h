// Writes an order as a schedule that people can read.
#pragma once

#include "ppcc/Synthesis/Orders.h"

namespace ppcc::synthesis {

/// What stands around the order.
struct WrittenHead {
  std::string name;
  std::vector<std::string> comment; ///< Lines at the top.
  std::vector<std::string> comm;    ///< Settings of `comm`.
  std::string transports; ///< Of its cluster, as they are written there.
};

/// The source text of a schedule with the placement and costs of `program` that
/// runs `order`: phases, loops where something repeats itself, and one piece
/// for ranks that differ in the counts of their loops alone. O(actions *
/// longest period).
std::string write(const Program &program, const Problem &problem,
                  const Order &order, const WrittenHead &head);

} // namespace ppcc::synthesis
