// Looks for the order that takes least time.
#include "Pool.h"

using namespace ppcc;
using namespace ppcc::synthesis;

std::optional<Time> Pool::decode(const Policy &policy, Order &order,
                                 Time cutoff) {
  ++evaluations;
  uint64_t before = decoder.steps();
  auto value = decoder.run(policy, order, cutoff);
  actions += decoder.steps() - before;
  return value;
}

void Pool::offer(const Order &order, Time value, const Policy *policy) {
  auto place = llvm::lower_bound(
      kept, value, [](const Entry &entry, Time v) { return entry.value < v; });
  if (place - kept.begin() >= ptrdiff_t(maxKept) ||
      (place != kept.end() && place->value == value))
    return;
  if (policy && options.accepts && !options.accepts(*policy, actions))
    return;
  bool isBest = place == kept.begin();
  kept.insert(place, {value, order});
  if (kept.size() > maxKept)
    kept.pop_back();
  if (isBest && options.onBest)
    options.onBest(value, bound.time);
}

/// The number of a greedy policy's choices, in the order of these tables.
static constexpr uint32_t gradientWaits[] = {0, 2},
                          capTenths[] = {0, 10, 15, 20, 12, 7, 8,
                                         9, 11, 13, 17, 25, 30};
static constexpr Policy::Prefer preferences[] = {Policy::Prefer::Gradients,
                                                 Policy::Prefer::Alternate,
                                                 Policy::Prefer::Forwards};
/// weightGap and balancesIdle, lag and lagByRank.
static constexpr std::pair<uint32_t, bool>
    gaps[] = {{4, false}, {0, false}, {2, false}, {4, true}},
    lags[] = {{~0u, false}, {0, true}, {1, false}, {0, false}};

/// The policy of a number; the first choices change fastest.
static Policy greedyPolicy(const Problem &problem, size_t number) {
  auto choose = [&number](auto &table) {
    auto choice = table[number % std::size(table)];
    number /= std::size(table);
    return choice;
  };
  Policy policy;
  policy.prefer = choose(preferences);
  std::tie(policy.lag, policy.lagByRank) = choose(lags);
  std::tie(policy.weightGap, policy.balancesIdle) = choose(gaps);
  // Caps of so many tenths of what keeps a rank busy while a microbatch is
  // away.
  if (uint32_t tenths = choose(capTenths))
    for (Time roundTrip : problem.roundTrip)
      policy.caps.push_back(static_cast<uint32_t>(
          decimal::Sum(roundTrip) * tenths /
              std::max<decimal::Sum>(decimal::Sum(problem.period) * 10, 1) +
          1));
  policy.gradientWait = choose(gradientWaits);
  policy.deepFirst = number == 0;
  return policy;
}

void synthesis::searchGreedy(Pool &pool) {
  const Problem &problem = pool.problem;
  size_t all = std::size(gaps) * std::size(gradientWaits) *
               std::size(capTenths) * std::size(preferences) * std::size(lags) *
               (problem.maxChunks > 1 ? 2 : 1);
  // The usual ones first, then all, spread so that few of them differ.
  constexpr size_t usual = 12, stride = 1'000'003;
  uint64_t end = pool.actions + pool.left() / 4;
  Order order;
  auto tryPolicy = [&](size_t number) {
    Policy policy = greedyPolicy(problem, number);
    if (auto value = pool.decode(policy, order, pool.cutoff()))
      pool.offer(order, *value, &policy);
  };
  for (size_t i = 0; i != usual && !pool.isDone(); ++i)
    tryPolicy(i);
  if (pool.options.moreOrders && !pool.isAtBound()) {
    constexpr unsigned costOfOrder = 32; // To make an action.
    ArrayRef<Order> more = pool.options.moreOrders();
    pool.actions += more.size() * problem.numActions * costOfOrder;
    pool.offerAll(more);
  }
  for (size_t i = 0; i != all && !pool.isDone() && pool.actions <= end; ++i)
    tryPolicy(i * stride % all);
}

SearchResult synthesis::search(const Problem &problem,
                               ArrayRef<Order> initialOrders,
                               const SearchOptions &options) {
  Pool pool(problem, options);
  pool.offerAll(initialOrders);
  if (!pool.isDone())
    searchGreedy(pool);
  if (!pool.isDone() && options.refines)
    searchExact(pool, pool.left() / 32, 128);
  if (!pool.isDone() &&
      (problem.maxChunks > 1 || problem.objective == Objective::Span))
    searchPeriodic(pool);
  if (!pool.isDone() && options.refines) {
    refine(pool, pool.actions + pool.left() / 16 * 15);
    if (!pool.isDone())
      searchExact(pool, pool.left(), 16);
    refine(pool, options.budget);
  }
  SearchResult found;
  found.bound = pool.bound;
  found.evaluations = pool.evaluations;
  found.actions = pool.actions;
  if (!pool.kept.empty()) {
    found.order = std::move(pool.kept.front().order);
    found.value = pool.kept.front().value;
    for (Pool::Entry &entry : llvm::drop_begin(pool.kept))
      found.others.push_back(std::move(entry.order));
  }
  return found;
}
