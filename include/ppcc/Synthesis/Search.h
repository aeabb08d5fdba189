// Looks for the order that takes least time.
#pragma once

#include "ppcc/Synthesis/Decode.h"

#include <atomic>

namespace ppcc::synthesis {

struct SearchOptions {
  /// The actions that are simulated at most: the measure of effort that is the
  /// same on every machine.
  uint64_t budget = 0;
  /// Whether orders may differ from microbatch to microbatch without a pattern.
  bool refines = true;
  const std::atomic<bool> *stop = nullptr; ///< Set from outside to end soon.
  /// Of policies, only those count that this agrees to; asked about those that
  /// would be among the best. What it simulates it adds to the actions.
  std::function<bool(const Policy &, uint64_t &actions)> accepts;
  /// Orders that take long to make, where the usual policies do not meet the
  /// bound.
  std::function<ArrayRef<Order>()> moreOrders;
  /// Called at each improvement.
  std::function<void(Time best, Time bound)> onBest;
};

struct SearchResult {
  Order order; ///< Empty when nothing was found.
  Time value = 0;
  ResourceBound bound;       ///< No order is below it.
  std::vector<Order> others; ///< The next best, the best first.
  uint64_t evaluations = 0;  ///< Orders that were made or run.
  uint64_t actions = 0;      ///< That were simulated.
};

/// The best order of those that it comes by: greedy ones, periodic ones, those
/// of `known`, and what small changes make of them. It ends at the bound, or
/// with the budget. The same for the same arguments on every machine, unless
/// stopped.
SearchResult search(const Problem &problem, ArrayRef<Order> initialOrders,
                    const SearchOptions &options);

} // namespace ppcc::synthesis
