// The best orders that a search has come by, and what is left of its budget.
#pragma once

#include "ppcc/Synthesis/Search.h"

namespace ppcc::synthesis {

/// What the parts of a search share.
class Pool {
public:
  Pool(const Problem &problem, const SearchOptions &options)
      : problem(problem), options(options), decoder(problem) {}

  /// Whether nothing more is to be done: the bound is met, the budget is used,
  /// or somebody says so.
  bool isDone() const {
    return isAtBound() || actions >= options.budget || isStopped();
  }
  bool isStopped() const { return options.stop && *options.stop; }
  bool isAtBound() const {
    return !kept.empty() && kept.front().value <= bound.time;
  }
  uint64_t left() const {
    return actions >= options.budget ? 0 : options.budget - actions;
  }

  /// Makes an order by a policy; its value, or nothing, if not below `cutoff`.
  std::optional<Time> decode(const Policy &policy, Order &order, Time cutoff);
  /// What is not below it is not kept.
  Time cutoff() const {
    return kept.size() < maxKept ? std::numeric_limits<Time>::max()
                                 : kept.back().value;
  }
  /// Runs an order.
  std::optional<Time> run(const Order &order, Runner &runner) {
    ++evaluations;
    actions += problem.numActions;
    return runner.run(order);
  }
  /// Keeps it when it is among the best that differ in value, and the policy
  /// that made it is accepted.
  void offer(const Order &order, Time value, const Policy *policy = nullptr);
  void offerAll(ArrayRef<Order> orders) {
    Runner runner(problem);
    for (const Order &order : orders)
      if (auto value = run(order, runner))
        offer(order, *value);
  }

  struct Entry {
    Time value;
    Order order;
  };

  static constexpr size_t maxKept = 8;

  const Problem &problem;
  const SearchOptions &options;
  Decoder decoder;
  ResourceBound bound = problem.bound; ///< No order is below it.
  std::vector<Entry> kept;             ///< The best few, the best first.
  uint64_t evaluations = 0, actions = 0;
};

/// Policies without keys.
void searchGreedy(Pool &pool);
/// Policies with periodic keys, for ranks with several stages.
void searchPeriodic(Pool &pool);
/// Changes of the best orders, until so many actions are simulated.
void refine(Pool &pool, uint64_t end);
/// Raises the bound, and may find better orders, for so many actions; not where
/// they are less than so many passes over the states of all ranks.
void searchExact(Pool &pool, uint64_t actions, uint64_t minPasses);

} // namespace ppcc::synthesis
