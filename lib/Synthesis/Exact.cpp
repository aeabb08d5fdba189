// Proves that no order is faster than the best one found, or finds one that is.
//
// Algorithm: destructive bounds (Klein and Scholl, EJOR 112, 1999): assume a
// makespan of at most T, and refute it. Each action has a window for its start.
// Two rules narrow windows until nothing changes: an action follows what it
// waits for; and, for one rank, dynamic programming over its states, the number
// of microbatches that each op has done. The state says what may come next, and
// what the rank holds, so a path through the states is an order of the rank,
// and starts on no path within the windows go. For one rank this is complete;
// edge finding (Carlier and Pinson 1989) is not. What is not refuted is split:
// an action starts in the first half of its window, or in the second. Which
// one is learned, as in failure-directed search (Vilim, Laborie, Shaw 2015).
// Invariant: windows keep every left-justified schedule that ends by T, obeys
// the splits, and runs the microbatches of each op in order. A schedule of
// this kind is among the best. In order: let b_m >= a_m + c be the starts of an
// op and one that it waits for. When the n-th b starts, n of the a have done so
// c before; so the n-th b follows the n-th a, and renaming microbatches by
// their starts keeps all times. It also keeps what ranks hold: all microbatches
// of an op take the same. Left-justified: memory depends on the order of a rank
// only. Times then are sums of durations and latencies, multiples of their gcd,
// which is the unit of time here.
// Cost: O(states * ops) a rank and round, within the budget.
//
// Example: ranks 0 and 1, M = 2, F = I = W = 1, T = 6. Rank 1 starts at 1 and
// has 6 actions, so no path ends by 6: the bound is 7.
#include "Pool.h"

using namespace ppcc;
using namespace ppcc::synthesis;

using enum Workload::Part;

namespace {

constexpr Time never = std::numeric_limits<Time>::max() / 4;

class Exact {
public:
  Exact(Pool &pool, uint64_t actions, uint64_t minPasses)
      : pool(pool), end(pool.actions + actions), maxMoves(actions / minPasses) {
  }

  void run() {
    if (problem.objective != Objective::Makespan || problem.plan)
      return;
    for (Op op = 0; op != problem.numOps(); ++op) {
      unit = std::gcd(unit, problem.time[op]);
      for (Problem::Edge edge : problem.sources(op))
        unit = std::gcd(unit, edge.latency);
    }
    if (unit == 0 || !addStates())
      return;
    addEdges();
    // Less than `low` is refuted; of `high`, or one less, nothing is known.
    Time low = (pool.bound.time + unit - 1) / unit, high = best();
    while (low < high && pool.actions < end && !pool.isDone()) {
      makespan = high == best() ? high - 1 : (low + high) / 2;
      limit = pool.actions + (end - pool.actions) / 2;
      if (isRefuted()) {
        low = makespan + 1;
        std::swap(shown, cases);
      } else
        high = std::min(makespan, best());
    }
    if (low * unit <= pool.bound.time)
      return;
    pool.bound = {};
    pool.bound.time = low * unit;
    pool.bound.kind = ResourceBound::Kind::Search;
    pool.bound.rounds = nodes;
    pool.bound.cases = std::move(shown);
  }

private:
  struct Window {
    Time from, to;
  };
  /// Of two actions, one starts so long after the other, at least.
  struct Edge {
    uint32_t source, target;
    Time gap;
  };
  /// An action of a rank, from one of its states to another.
  struct Move {
    uint32_t source, target, action;
  };
  struct Rank {
    std::vector<uint32_t> actions;
    std::vector<Move> moves; ///< In the order of their sources.
    uint32_t numStates = 1;
    bool isDirty = true; ///< Whether windows have changed.
  };
  static constexpr uint32_t scale = 1000; ///< Of ratings.

  Time best() const { return pool.kept.front().value / unit; }
  bool isOut() const { return pool.actions >= limit || pool.isStopped(); }

  void addEdges() {
    for (Op op = 0; op != problem.numOps(); ++op)
      for (uint32_t m = 0; m != problem.count[op]; ++m) {
        opOf.push_back(op);
        times.push_back(problem.time[op] / unit);
      }
    for (Op op : inOrder)
      for (uint32_t m = 0; m != problem.count[op]; ++m) {
        uint32_t action = problem.first[op] + m;
        if (m != 0)
          edges.push_back({action - 1, action, times[action]});
        for (auto [source, latency] : problem.sources(op))
          edges.push_back({problem.first[source] + m, action,
                           (problem.time[source] + latency) / unit});
      }
    ratings.assign(opOf.size(), {scale, scale});
    narrowed.resize(opOf.size());
  }

  /// Lists the states of all ranks; false when there are too many.
  bool addStates() {
    std::vector<BitVector> before(problem.numOps(),
                                  BitVector(problem.numOps()));
    uint32_t stages = problem.load.stages.size();
    for (uint32_t s = 0; s != stages; ++s)
      inOrder.push_back(synthesis::opOf(s, F));
    for (uint32_t s = stages; s-- != 0;)
      inOrder.insert(inOrder.end(),
                     {synthesis::opOf(s, I), synthesis::opOf(s, W)});
    for (Op op : inOrder)
      for (Problem::Edge edge : problem.sources(op)) {
        before[op].set(edge.op);
        before[op] |= before[edge.op];
      }
    uint64_t moves = 0;
    for (uint32_t r = 0; r != problem.numRanks(); ++r) {
      Rank &rank = ranks.emplace_back();
      // A state is a number in a mixed radix: a count of each op.
      SmallVector<std::pair<Op, uint64_t>> ops;
      unsigned __int128 place = 1;
      for (uint32_t s : problem.load.ofRank[r])
        for (auto part : {F, I, W}) {
          Op op = synthesis::opOf(s, part);
          ops.push_back({op, uint64_t(place)});
          place *= problem.count[op] + 1;
          if (place >> 64)
            return false;
          for (uint32_t m = 0; m != problem.count[op]; ++m)
            rank.actions.push_back(problem.first[op] + m);
        }
      std::vector<uint64_t> states{0};
      std::unordered_map<uint64_t, uint32_t> indexOf;
      for (uint32_t source = 0; source != states.size(); ++source) {
        auto countOf = [&, state = states[source]](auto &op) {
          return state / op.second % (problem.count[op.first] + 1);
        };
        Amount held = 0;
        for (auto &op : ops)
          held += Amount(countOf(op)) *
                  (problem.allocates[op.first] - problem.frees[op.first]);
        for (auto &next : ops) {
          Op op = next.first;
          uint64_t m = countOf(next), state = states[source] + next.second;
          if (m == problem.count[op] ||
              held + problem.allocates[op] > problem.memoryBudget[r] ||
              llvm::any_of(ops, [&](auto &other) {
                return before[op][other.first] && countOf(other) == m;
              }))
            continue;
          auto [target, isNew] = indexOf.try_emplace(state, states.size());
          if (isNew)
            states.push_back(state);
          rank.moves.push_back(
              {source, target->second, uint32_t(problem.first[op] + m)});
        }
        if (moves + rank.moves.size() > maxMoves)
          return false;
      }
      rank.numStates = states.size();
      moves += rank.moves.size();
      pool.actions += 8 * rank.moves.size();
    }
    return true;
  }

  /// Whether something is left of a window.
  bool narrow(uint32_t action, Time from, Time to) {
    Window &window = windows[action];
    if (from > window.from || to < window.to) {
      window = {std::max(from, window.from), std::min(to, window.to)};
      ranks[problem.rank[opOf[action]]].isDirty = true;
    }
    return window.from <= window.to;
  }

  bool narrowByEdges() {
    pool.actions += edges.size() / 2;
    for (auto [source, target, gap] : edges)
      if (!narrow(target, windows[source].from + gap, never))
        return false;
    for (auto [source, target, gap] : llvm::reverse(edges))
      if (!narrow(source, -never, windows[target].to - gap))
        return false;
    return true;
  }

  bool narrowByStates(Rank &rank) {
    pool.actions += rank.moves.size();
    earliest.assign(rank.numStates, never);
    latest.assign(rank.numStates, -never);
    earliest.front() = 0;
    latest.back() = never;
    for (auto [source, target, action] : rank.moves) {
      Time start = std::max(earliest[source], windows[action].from);
      if (start <= windows[action].to)
        earliest[target] = std::min(earliest[target], start + times[action]);
    }
    for (uint32_t action : rank.actions)
      narrowed[action] = {never, -never};
    for (auto [source, target, action] : llvm::reverse(rank.moves)) {
      Time from = std::max(earliest[source], windows[action].from);
      Time to = std::min(latest[target] - times[action], windows[action].to);
      if (from > to)
        continue;
      latest[source] = std::max(latest[source], to);
      narrowed[action] = {std::min(narrowed[action].from, from),
                          std::max(narrowed[action].to, to)};
    }
    for (uint32_t action : rank.actions)
      if (!narrow(action, narrowed[action].from, narrowed[action].to))
        return false;
    rank.isDirty = false;
    return true;
  }

  /// Whether no schedule is within the windows, as far as the rules show.
  bool isRefutedByRules() {
    ++nodes;
    while (!isOut()) {
      bool isWithin = narrowByEdges();
      if (isWithin &&
          llvm::none_of(ranks, [](Rank &rank) { return rank.isDirty; }))
        return false;
      for (Rank &rank : ranks)
        isWithin = isWithin && (!rank.isDirty || narrowByStates(rank));
      if (!isWithin) {
        cases.emplace_back();
        return true;
      }
    }
    return false;
  }

  bool isRefuted() {
    windows.clear();
    cases.clear();
    for (Time time : times)
      windows.push_back({0, makespan - time});
    for (Rank &rank : ranks)
      rank.isDirty = true;
    return isRefutedByRules() || isRefutedBySplits();
  }

  uint32_t bitsOf(Window window) const {
    return std::bit_width(uint64_t(window.to - window.from));
  }
  uint64_t size() const {
    uint64_t bits = 0;
    for (Window window : windows)
      bits += bitsOf(window);
    return bits;
  }

  bool isRefutedBySplits() {
    if (isOut())
      return false;
    tryOrder();
    uint64_t before = size();
    if (best() <= makespan || before == 0)
      return false;
    uint32_t split = 0;
    auto rank = [&](uint32_t action) {
      return bitsOf(windows[action]) == 0
                 ? ~0u
                 : ratings[action][0] + ratings[action][1];
    };
    for (uint32_t action = 1; action != windows.size(); ++action)
      if (rank(action) < rank(split))
        split = action;
    std::vector<Window> saved = windows;
    Time middle = std::midpoint(windows[split].from, windows[split].to);
    bool first = ratings[split][1] < ratings[split][0];
    Op op = opOf[split];
    cases.push_back({op, split - problem.first[op], middle * unit, first});
    for (bool isLate : {first, !first}) {
      windows = saved;
      narrow(split, isLate ? middle + 1 : -never, isLate ? never : middle);
      bool isRefuted = isRefutedByRules();
      uint32_t &rating = ratings[split][isLate];
      rating =
          (rating * 9 + (isRefuted ? 0 : scale + scale * size() / before)) / 10;
      if (!isRefuted && !isRefutedBySplits())
        return false;
    }
    return true;
  }

  /// The order in the middle of the windows may be a better one.
  void tryOrder() {
    Order order;
    for (Rank &rank : ranks) {
      llvm::stable_sort(rank.actions, [&](uint32_t a, uint32_t b) {
        return windows[a].from + windows[a].to <
               windows[b].from + windows[b].to;
      });
      OpSequence &sequence = order.emplace_back();
      for (uint32_t action : rank.actions)
        sequence.push_back(opOf[action]);
      if (!isValid(problem, order.size() - 1, sequence))
        return;
    }
    if (auto value = pool.run(order, runner); value && *value / unit < best())
      pool.offer(order, *value);
  }

  Pool &pool;
  uint64_t end, limit = 0; ///< Of the pool's actions, over all and by makespan.
  uint64_t maxMoves;
  uint64_t nodes = 0;
  const Problem &problem = pool.problem;
  Runner runner{problem};
  Time unit = 0, makespan = 0;
  std::vector<Op> inOrder; ///< Each after those that it waits for.
  std::vector<Edge> edges; ///< In this order of their targets.
  std::vector<Rank> ranks;
  std::vector<Op> opOf; ///< By action, as what follows.
  std::vector<Time> times;
  std::vector<Window> windows, narrowed;
  std::vector<std::array<uint32_t, 2>> ratings;  ///< Of both halves.
  std::vector<Time> earliest, latest;            ///< Of a rank in a state.
  std::vector<ResourceBound::Case> cases, shown; ///< Of this and of `low - 1`.
};

} // namespace

void synthesis::searchExact(Pool &pool, uint64_t actions, uint64_t minPasses) {
  if (!pool.kept.empty())
    Exact(pool, actions, minPasses).run();
}
