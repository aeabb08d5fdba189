// Looks for the order that takes least time.
#include "Pool.h"

using namespace ppcc;
using namespace ppcc::synthesis;

std::optional<Time> Pool::decode(const Policy &policy, Order &order) {
  // A decision costs about four times what an action of a run does.
  actions += 3 * uint64_t(problem.numActions);
  if (!decoder.run(policy, order))
    return std::nullopt;
  return run(order);
}

void Pool::offer(const Order &order, Time value) {
  constexpr size_t most = 8;
  if (!best || value < best->value) {
    best = Entry{value, order};
    if (options.onBest)
      options.onBest(value, evaluations);
  }
  auto place = llvm::lower_bound(others, value, [](const Entry &entry, Time v) {
    return entry.value < v;
  });
  if (place - others.begin() >= ptrdiff_t(most) ||
      (place != others.end() && place->value == value))
    return;
  others.insert(place, {value, order});
  if (others.size() > most)
    others.pop_back();
}

static void greedyWith(Pool &pool, Policy policy) {
  using Prefer = Policy::Prefer;
  struct Lag {
    uint32_t lag;
    bool byRank;
  };
  Order order;
  bool several = pool.problem.mostChunks > 1;
  for (uint32_t gap : {4, 0, 2})
    for (Lag lag : {Lag{~0u, false}, Lag{0, true}, Lag{1, false}, Lag{0, false}})
      for (Prefer prefer :
           {Prefer::Gradients, Prefer::Alternate, Prefer::Forwards})
        for (bool deep : {true, false})
          for (uint32_t patience : {0, 2}) {
            if ((!deep && !several) || (patience && prefer != Prefer::Gradients))
              continue;
            policy.weightGap = gap;
            policy.lag = lag.lag;
            policy.lagByRank = lag.byRank;
            policy.prefer = prefer;
            policy.deepFirst = deep;
            policy.patience = patience;
            if (auto value = pool.decode(policy, order))
              pool.offer(order, *value);
            if (pool.isDone())
              return;
          }
}

void synthesis::searchGreedy(Pool &pool) {
  const Problem &problem = pool.problem;
  // Caps of so many tenths of what keeps a rank busy while a microbatch is away.
  for (uint32_t tenths : {0, 10, 15, 20, 12, 7, 8, 9, 11, 13, 17, 25, 30}) {
    Policy policy;
    if (tenths != 0)
      for (Time away : problem.away)
        policy.caps.push_back(static_cast<uint32_t>(
            decimal::Sum(away) * tenths /
                std::max<decimal::Sum>(decimal::Sum(problem.period) * 10, 1) +
            1));
    greedyWith(pool, policy);
    if (pool.isDone())
      return;
  }
}

Found synthesis::search(const Problem &problem, llvm::ArrayRef<Order> known,
                        const SearchOptions &options) {
  Pool pool(problem, options);
  for (const Order &order : known)
    if (auto value = pool.run(order))
      pool.offer(order, *value);
  if (!pool.isDone())
    searchGreedy(pool);
  if (!pool.isDone() && options.refines)
    refine(pool);
  Found found;
  found.evaluations = pool.evaluations;
  found.actions = pool.actions;
  if (pool.best) {
    found.order = std::move(pool.best->order);
    found.value = pool.best->value;
  }
  return found;
}
