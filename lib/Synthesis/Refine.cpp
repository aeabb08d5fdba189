// Improves orders by local search.
//
// Algorithm: threshold accepting (Dueck and Scheuer 1990). A move shifts one
// action along its rank's sequence, mostly on a random critical path; this
// extends the swaps N1 of van Laarhoven, Aarts and Lenstra (1992). A move stays
// if the value grows by at most a random part of the threshold, which falls
// linearly to 0. Rounds restart from one of the best orders.
// Invariant: an accepted order keeps each rank within its memory, as repair()
// checks, and has no deadlock, as the simulation reaches its end. A move is
// judged by the longest path through what it changes, from the heads and tails
// of the order before; nearly all that pass stay.
// Cost: O(moved places) a try, and O(actions that start or end at another time)
// a move that stays, all within the budget.
//
// Example: two ranks with one stage each, M = 2, F = I = W = 1.
// Rank 0: F F I W I W; rank 1: F I W F I W; makespan 8. The last F and I of
// rank 1 are on the critical path. The first W of rank 1 moves two places
// later: F I F I W W; makespan 7.
#include "Pool.h"
#include "Random.h"

using namespace ppcc;
using namespace ppcc::synthesis;

using enum Workload::Part;

namespace {

/// Threshold accepting (Dueck, Scheuer, 1990) over moves of one action on one
/// rank.
struct Refiner {
  Refiner(Pool &pool, Random &random) : pool(pool), random(random) {}

  /// From one of the pool's orders, with so many actions to simulate.
  void run(const Pool::Entry &from, uint64_t actions, Time initialThreshold) {
    auto value = pool.run(from.order, runner);
    if (!value)
      return;
    begin();
    // Of the spans of ranks, all that are too long count a little.
    bool isSpan = problem.objective == Objective::Span;
    auto weigh = [&](Time value) {
      return isSpan ? value + runner.excess() / problem.numRanks() : value;
    };
    Time current = weigh(*value), bestHere = *value;
    uint64_t end = std::min(pool.actions + actions, pool.options.budget);
    uint64_t begin = pool.actions;
    for (uint64_t rejectedInSuccession = 0;
         pool.actions < end && !pool.isDone() && !path.empty();) {
      if (++rejectedInSuccession > 64) {
        collectCriticalPath();
        rejectedInSuccession = 0;
        continue;
      }
      bool isMoved = move();
      pool.actions +=
          8 + 3 * (last - first) + 3 * std::exchange(runner.steps, 0);
      Time threshold = static_cast<Time>(decimal::Sum(initialThreshold) *
                                         (end - std::min(pool.actions, end)) /
                                         std::max<uint64_t>(end - begin, 1));
      threshold = current + Time(random.below(threshold + 1));
      if (isMoved && estimate() <= threshold) {
        auto moved = runner.update(rank, first, last,
                                   isSpan ? 2 * threshold : threshold);
        if (moved && weigh(*moved) <= threshold) {
          current = weigh(*moved);
          rejectedInSuccession = 0;
          accept();
          if (*moved < bestHere) {
            bestHere = *moved;
            // In no time ranks may wait for each other.
            if (pool.run(runner.order(), whole) == bestHere)
              pool.offer(runner.order(), bestHere);
          }
          continue;
        }
        runner.undo();
      }
      for (auto [from, to] : llvm::reverse(shifts))
        runner.shift(rank, to, from);
    }
  }

  /// An action that starts when the one before it on its rank ends, on a
  /// critical path.
  struct Arc {
    uint32_t rank, place;
  };

  void begin() {
    for (uint32_t r = 0; r != problem.numRanks(); ++r) {
      live[r].assign(runner.order()[r].size() + 1, 0);
      updateLive(r, 0, runner.order()[r].size());
    }
    runner.computeTails();
    pool.actions += problem.numActions;
    collectCriticalPath();
  }
  void accept() {
    updateLive(rank, first, last);
    runner.updateTails(rank, first, last);
    ++pool.evaluations;
    // Most of the path is as before.
    if (++changes * 32 > path.size())
      collectCriticalPath();
  }
  void updateLive(uint32_t r, size_t from, size_t to) {
    for (size_t place = from; place != to; ++place) {
      Op op = runner.order()[r][place];
      uint32_t m = runner.microbatches(r)[place];
      live[r][place + 1] =
          live[r][place] + problem.allocatedBy(op, m) - problem.freedBy(op, m);
    }
  }

  /// The arcs of one of the critical paths of the order, chosen at random; none
  /// where ranks wait for each other in no time.
  void collectCriticalPath() {
    path.clear();
    changes = 0;
    uint32_t r = runner.lastRank();
    uint32_t place = static_cast<uint32_t>(runner.order()[r].size()) - 1;
    for (uint64_t steps = 0; steps <= problem.numActions; ++steps) {
      Op op = runner.order()[r][place];
      uint32_t m = runner.microbatches(r)[place];
      Time start = runner.startOf(op, m);
      bool perRank = place != 0 &&
                     runner.endOf(runner.order()[r][place - 1],
                                  runner.microbatches(r)[place - 1]) == start;
      const Problem::Edge *cause = nullptr;
      for (const Problem::Edge &edge : problem.sources(op))
        if (runner.endOf(edge.op, m) + edge.latency == start)
          cause = &edge;
      if (perRank)
        path.push_back({r, place});
      if (cause && (!perRank || random.below(2))) {
        r = problem.rank[cause->op];
        place = runner.positionOf(cause->op, m);
      } else if (perRank) {
        --place;
      } else {
        pool.actions += 2 * path.size();
        return;
      }
    }
    path.clear();
  }

  /// Moves an action of the rank from one place to another. Places from
  /// `first` to before `last` have changed.
  void change(size_t from, size_t to) {
    first = std::min({first, from, to});
    last = std::max({last, from + 1, to + 1});
    shifts.push_back({from, to});
    runner.shift(rank, from, to);
  }

  /// Whether one of these places holds a microbatch of one of the ops.
  bool holds(size_t from, size_t to, uint32_t m, ArrayRef<Problem::Edge> ops) {
    for (size_t place = from; place != to; ++place)
      for (Problem::Edge edge : ops)
        if (runner.order()[rank][place] == edge.op &&
            runner.microbatches(rank)[place] == m)
          return true;
    return false;
  }

  /// Changes one rank; false when nothing can come of it.
  bool move() {
    Arc arc = path[random.below(path.size())];
    shifts.clear();
    first = last = 0;
    if (random.below(8) == 0) { // Off the path, what is in its way may go.
      arc.rank = static_cast<uint32_t>(random.below(problem.numRanks()));
      size_t size = runner.order()[arc.rank].size();
      if (size < 2)
        return false;
      arc.place = 1 + static_cast<uint32_t>(random.below(size - 1));
    }
    rank = arc.rank;
    const OpSequence &sequence = runner.order()[rank];
    size_t end = sequence.size() - 1, from = arc.place, to = from - 1;
    auto upTo = [&](size_t most) { return 1 + random.below(most); };
    switch (random.below(8)) {
    case 0:
    case 1:
      break;
    case 2:
    case 3:
      to = from - std::min<size_t>(upTo(8), from);
      break;
    case 4:
    case 5:
      --from;
      to = std::min<size_t>(from + upTo(8), end);
      break;
    default:
      // The next W before it goes after.
      while (from != 0 && partOf(sequence[from - 1]) != W)
        --from;
      if (from == 0 || arc.place - from > 8)
        return false;
      --from;
      to = std::min<size_t>(from + upTo(30), end);
    }
    Op op = sequence[from];
    uint32_t m = runner.microbatches(rank)[from];
    auto passed = ArrayRef(sequence).slice(
        std::min(from, to), std::max(from, to) - std::min(from, to) + 1);
    if (llvm::count(passed, op) != 1 ||
        holds(std::min(from, to), std::max(from, to) + 1, m,
              from < to ? problem.readers(op) : problem.sources(op)))
      return false;
    first = from;
    change(from, to);
    return repair();
  }

  /// Makes the rank keep to its room: where something does not fit, the next W,
  /// or else the next I, comes before it.
  bool repair() {
    const OpSequence &sequence = runner.order()[rank];
    Amount now = live[rank][first];
    for (size_t place = first; place != last; ++place) {
      auto allocated = [&] {
        return problem.allocatedBy(sequence[place],
                                   runner.microbatches(rank)[place]);
      };
      for (unsigned pulls = 0; now + allocated() > problem.memoryBudget[rank];
           ++pulls) {
        size_t from = place + 1, end = std::min(sequence.size(), place + 64);
        auto isReady = [&](unsigned part) {
          Op op = sequence[from];
          return partOf(op) == part &&
                 problem.frees[op] > problem.allocates[op] &&
                 !holds(place, from, runner.microbatches(rank)[from],
                        problem.sources(op));
        };
        while (from < end && !isReady(W))
          ++from;
        if (from >= end)
          for (from = place + 1; from < end && !isReady(I);)
            ++from;
        if (from >= end || pulls == 8)
          return false;
        change(from, place);
      }
      now += allocated() -
             problem.freedBy(sequence[place], runner.microbatches(rank)[place]);
    }
    return true;
  }

  /// The longest path through what has changed, if nothing else starts or ends
  /// at another time (Balas and Vazacopoulos 1998).
  Time estimate() {
    if (problem.objective == Objective::Span)
      return 0;
    const OpSequence &sequence = runner.order()[rank];
    const std::vector<uint32_t> &ms = runner.microbatches(rank);
    Time now =
        first == 0 ? 0 : runner.endOf(sequence[first - 1], ms[first - 1]);
    starts.clear();
    for (size_t place = first; place != last; ++place) {
      Op op = sequence[place];
      for (Problem::Edge edge : problem.sources(op))
        if (problem.rank[edge.op] != rank)
          now = std::max(now, runner.endOf(edge.op, ms[place]) + edge.latency);
      starts.push_back(now);
      now += problem.timeOf(op, ms[place]);
    }
    Time tail =
        last == sequence.size() ? 0 : runner.tailOf(sequence[last], ms[last]);
    Time longest = 0;
    for (size_t place = last; place-- != first;) {
      Op op = sequence[place];
      for (Problem::Edge edge : problem.readers(op))
        if (problem.rank[edge.op] != rank)
          tail =
              std::max(tail, runner.tailOf(edge.op, ms[place]) + edge.latency);
      tail += problem.timeOf(op, ms[place]);
      longest = std::max(longest, starts[place - first] + tail);
    }
    return longest;
  }

  Pool &pool;
  Random &random;
  const Problem &problem = pool.problem;
  Runner runner{problem}; ///< That of the order.
  Runner whole{problem};
  std::vector<std::vector<Amount>> live{problem.numRanks()}; ///< By place.
  std::vector<Arc> path;
  size_t changes = 0; ///< Since it was collected.
  uint32_t rank = 0;  ///< That a move is about.
  size_t first = 0, last = 0;
  std::vector<std::pair<size_t, size_t>> shifts;
  std::vector<Time> starts;
};

} // namespace

void synthesis::refine(Pool &pool, uint64_t end) {
  Random random(1);
  Refiner refiner(pool, random);
  // Rounds, each longer than the one before, over the best there is by then or
  // another of the best; most of them cool.
  constexpr Time thresholdDivisors[] = {16, 64, 4, 1024, 16, 32, 2};
  for (uint64_t round = 0;
       pool.actions < end && !pool.isDone() && !pool.kept.empty(); ++round) {
    uint64_t actions = std::min<uint64_t>(
        end - pool.actions, uint64_t(pool.problem.numActions)
                                << std::min<uint64_t>(round / 4, 20));
    actions = std::min(end - pool.actions, actions * 40);
    size_t which = round % 3 ? 0 : random.below(pool.kept.size());
    Pool::Entry from = pool.kept[which];
    refiner.run(from, actions,
                std::max<Time>(
                    pool.problem.period /
                        thresholdDivisors[round % std::size(thresholdDivisors)],
                    1));
  }
}
