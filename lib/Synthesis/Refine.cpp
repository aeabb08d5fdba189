// Improves orders by local search.
//
// Algorithm: threshold accepting (Dueck and Scheuer 1990). A move shifts one
// action along its rank's sequence, mostly on a random critical path; this
// extends the swaps N1 of van Laarhoven, Aarts and Lenstra (1992). A move stays
// if the value grows by at most a random part of the threshold, which falls
// linearly to 0. Rounds restart from one of the best orders.
// Invariant: an accepted order keeps each rank within its memory, as repair()
// checks, and has no deadlock, as the simulation reaches its end.
// Cost: O(actions of all ranks) a try, all within the budget.
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
  Pool &pool;
  Random &random;

  /// From one of the pool's orders, with so many actions to simulate.
  void run(const Pool::Entry &from, uint64_t actions, Time initialThreshold) {
    order = from.order;
    auto value = pool.run(order);
    if (!value)
      return;
    // Of the spans of ranks, all that are too long count a little.
    auto weigh = [&](Time value) {
      return problem.objective == Objective::Span
                 ? value + pool.runner.excess() / problem.numRanks()
                 : value;
    };
    Time current = weigh(*value), bestHere = *value;
    uint64_t end = std::min(pool.actions + actions, pool.options.budget);
    uint64_t begin = pool.actions;
    collectCriticalPath();
    for (uint64_t rejectedInSuccession = 0;
         pool.actions < end && !pool.isDone();) {
      if (path.empty() || rejectedInSuccession > 64) {
        if (!pool.run(order))
          return;
        collectCriticalPath();
        rejectedInSuccession = 0;
        if (path.empty())
          return;
      }
      ++rejectedInSuccession;
      pool.actions += 8; // So that moves that never fit end, too.
      uint32_t rank = move();
      if (rank == ~0u)
        continue;
      auto moved = pool.run(order);
      Time threshold = static_cast<Time>(decimal::Sum(initialThreshold) *
                                         (end - std::min(pool.actions, end)) /
                                         std::max<uint64_t>(end - begin, 1));
      if (moved &&
          weigh(*moved) <= current + Time(random.below(threshold + 1))) {
        current = weigh(*moved);
        rejectedInSuccession = 0;
        if (*moved < bestHere) {
          bestHere = *moved;
          pool.offer(order, bestHere);
        }
        collectCriticalPath();
      } else {
        order[rank] = before;
      }
    }
  }

  /// An action that starts when the one before it on its rank ends, on a
  /// critical path.
  struct Arc {
    uint32_t rank, place;
  };

  /// The arcs of one of the critical paths of the last run, chosen at random.
  void collectCriticalPath() {
    path.clear();
    const Runner &run = pool.runner;
    uint32_t rank = run.lastRank();
    uint32_t place = static_cast<uint32_t>(order[rank].size()) - 1;
    while (true) {
      Op op = order[rank][place];
      uint32_t m = run.microbatches(rank)[place];
      Time start = run.startOf(op, m);
      bool perRank =
          place != 0 && run.endOf(order[rank][place - 1],
                                  run.microbatches(rank)[place - 1]) == start;
      const Problem::Edge *cause = nullptr;
      for (const Problem::Edge &edge : problem.sources(op))
        if (run.endOf(edge.op, m) + edge.latency == start)
          cause = &edge;
      if (perRank)
        path.push_back({rank, place});
      if (cause && (!perRank || random.below(2))) {
        rank = problem.rank[cause->op];
        place = run.positionOf(cause->op, m);
      } else if (perRank) {
        --place;
      } else {
        return;
      }
    }
  }

  /// Moves an action of the word from one place to another.
  static void shift(OpSequence &sequence, size_t from, size_t to) {
    if (from < to)
      std::rotate(sequence.begin() + from, sequence.begin() + from + 1,
                  sequence.begin() + to + 1);
    else
      std::rotate(sequence.begin() + to, sequence.begin() + from,
                  sequence.begin() + from + 1);
  }

  /// Changes one rank, which `before` then holds as it was; none when nothing
  /// came of it.
  uint32_t move() {
    Arc arc = path[random.below(path.size())];
    if (random.below(8) == 0) { // Off the path, what is in its way may go.
      arc.rank = static_cast<uint32_t>(random.below(order.size()));
      if (order[arc.rank].size() < 2)
        return ~0u;
      arc.place =
          1 + static_cast<uint32_t>(random.below(order[arc.rank].size() - 1));
    }
    OpSequence &sequence = order[arc.rank];
    before = sequence;
    size_t last = sequence.size() - 1, place = arc.place;
    auto upTo = [&](size_t most) { return 1 + random.below(most); };
    switch (random.below(8)) {
    case 0:
    case 1:
      shift(sequence, place, place - 1);
      break;
    case 2:
    case 3:
      shift(sequence, place, place - std::min<size_t>(upTo(8), place));
      break;
    case 4:
    case 5:
      shift(sequence, place - 1, std::min<size_t>(place - 1 + upTo(8), last));
      break;
    default: {
      // The next W before it goes after.
      size_t from = place;
      while (from != 0 && partOf(sequence[from - 1]) != W)
        --from;
      if (from == 0 || place - from > 8)
        return none(arc.rank);
      shift(sequence, from - 1, std::min<size_t>(from - 1 + upTo(30), last));
    }
    }
    if (sequence == before || !repair(arc.rank))
      return none(arc.rank);
    return arc.rank;
  }
  uint32_t none(uint32_t rank) {
    order[rank] = before;
    return ~0u;
  }

  /// Makes the word keep to its room: where something does not fit, the next W,
  /// or else the next I, comes before it. False when it makes no sense.
  bool repair(uint32_t rank) {
    OpSequence &sequence = order[rank];
    done.assign(problem.numOps(), 0);
    Amount live = 0, memoryBudget = problem.memoryBudget[rank];
    for (size_t place = 0; place != sequence.size(); ++place) {
      for (unsigned pulls = 0;
           live + problem.allocatedBy(sequence[place], done[sequence[place]]) >
           memoryBudget;
           ++pulls) {
        size_t from = place + 1, end = std::min(sequence.size(), place + 64);
        auto isReady = [&](Op op, unsigned part) {
          return partOf(op) == part &&
                 problem.frees[op] > problem.allocates[op] &&
                 done[op] < done[op - 1];
        };
        while (from < end && !isReady(sequence[from], W))
          ++from;
        if (from >= end)
          for (from = place + 1; from < end && !isReady(sequence[from], I);)
            ++from;
        if (from >= end || pulls == 8)
          return false;
        shift(sequence, from, place);
      }
      Op op = sequence[place];
      if (partOf(op) != F && done[op] == done[op - 1])
        return false;
      uint32_t m = done[op]++;
      live += problem.allocatedBy(op, m) - problem.freedBy(op, m);
    }
    return true;
  }

  const Problem &problem = pool.problem;
  Order order{};
  OpSequence before{};
  std::vector<Arc> path{};
  std::vector<uint32_t> done{};
};

} // namespace

void synthesis::refine(Pool &pool) {
  Random random(1);
  Refiner refiner{pool, random};
  // Rounds, each longer than the one before, over the best there is by then or
  // another of the best; most of them cool.
  constexpr Time thresholdDivisors[] = {16, 64, 4, 1024, 16, 32, 2};
  for (uint64_t round = 0; !pool.isDone() && !pool.kept.empty(); ++round) {
    uint64_t actions = std::min<uint64_t>(
        pool.left(), uint64_t(pool.problem.numActions)
                         << std::min<uint64_t>(round / 4, 20));
    actions = std::min(pool.left(), actions * 150);
    size_t which = round % 3 ? 0 : random.below(pool.kept.size());
    Pool::Entry from = pool.kept[which];
    refiner.run(from, actions,
                std::max<Time>(
                    pool.problem.period /
                        thresholdDivisors[round % std::size(thresholdDivisors)],
                    1));
  }
}
