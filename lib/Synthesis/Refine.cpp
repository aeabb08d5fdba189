// Small changes along critical paths.
#include "Pool.h"
#include "Random.h"

using namespace ppcc;
using namespace ppcc::synthesis;

using enum Workload::Part;

namespace {

/// Threshold accepting (Dueck, Scheuer, 1990) over moves of one action on one
/// rank.
class Refiner {
public:
  Refiner(Pool &pool, Random &random)
      : pool(pool), problem(pool.problem), random(random) {}

  /// From one of the pool's orders, with so many actions to simulate.
  void run(const Pool::Entry &from, uint64_t actions, Time hot) {
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
    collectPath();
    for (uint64_t fruitless = 0; pool.actions < end && !pool.isDone();) {
      if (path.empty() || fruitless > 64) {
        if (!pool.run(order))
          return;
        collectPath();
        fruitless = 0;
        if (path.empty())
          return;
      }
      ++fruitless;
      pool.actions += 8; // So that moves that never fit end, too.
      uint32_t rank = move();
      if (rank == ~0u)
        continue;
      auto moved = pool.run(order);
      Time heat = static_cast<Time>(decimal::Sum(hot) *
                                    (end - std::min(pool.actions, end)) /
                                    std::max<uint64_t>(end - begin, 1));
      if (moved && weigh(*moved) <= current + Time(random.below(heat + 1))) {
        current = weigh(*moved);
        fruitless = 0;
        if (*moved < bestHere) {
          bestHere = *moved;
          pool.offer(order, bestHere);
        }
        collectPath();
      } else {
        order[rank] = before;
      }
    }
  }

private:
  /// An action that starts when the one before it on its rank ends, on a
  /// critical path.
  struct Arc {
    uint32_t rank, place;
  };

  /// The arcs of one of the critical paths of the last run, chosen at random.
  void collectPath() {
    path.clear();
    const Runner &run = pool.runner;
    uint32_t rank = run.lastRank();
    uint32_t place = static_cast<uint32_t>(order[rank].size()) - 1;
    while (true) {
      Op op = order[rank][place];
      uint32_t m = run.microbatches(rank)[place];
      Time start = run.startOf(op, m);
      bool byRank =
          place != 0 && run.endOf(order[rank][place - 1],
                                  run.microbatches(rank)[place - 1]) == start;
      const Problem::Edge *cause = nullptr;
      for (const Problem::Edge &edge : problem.sources(op))
        if (run.endOf(edge.op, m) + edge.latency == start)
          cause = &edge;
      if (byRank)
        path.push_back({rank, place});
      if (cause && (!byRank || random.below(2))) {
        rank = problem.rank[cause->op];
        place = run.placeOf(cause->op, m);
      } else if (byRank) {
        --place;
      } else {
        return;
      }
    }
  }

  /// Moves an action of the word from one place to another.
  static void shift(Word &word, size_t from, size_t to) {
    if (from < to)
      std::rotate(word.begin() + from, word.begin() + from + 1,
                  word.begin() + to + 1);
    else
      std::rotate(word.begin() + to, word.begin() + from,
                  word.begin() + from + 1);
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
    Word &word = order[arc.rank];
    before = word;
    size_t last = word.size() - 1, place = arc.place;
    auto upTo = [&](size_t most) { return 1 + random.below(most); };
    switch (random.below(8)) {
    case 0:
    case 1:
      shift(word, place, place - 1);
      break;
    case 2:
    case 3:
      shift(word, place, place - std::min<size_t>(upTo(8), place));
      break;
    case 4:
    case 5:
      shift(word, place - 1, std::min<size_t>(place - 1 + upTo(8), last));
      break;
    default: {
      // The next W before it goes behind.
      size_t from = place;
      while (from != 0 && partOf(word[from - 1]) != W)
        --from;
      if (from == 0 || place - from > 8)
        return none(arc.rank);
      shift(word, from - 1, std::min<size_t>(from - 1 + upTo(30), last));
    }
    }
    if (word == before || !repair(arc.rank))
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
    Word &word = order[rank];
    done.assign(problem.numOps(), 0);
    Amount held = 0, room = problem.room[rank];
    for (size_t place = 0; place != word.size(); ++place) {
      for (unsigned pulls = 0;
           held + problem.takenBy(word[place], done[word[place]]) > room;
           ++pulls) {
        size_t from = place + 1, end = std::min(word.size(), place + 64);
        auto isReady = [&](Op op, unsigned part) {
          return partOf(op) == part && problem.gives[op] > problem.takes[op] &&
                 done[op] < done[op - 1];
        };
        while (from < end && !isReady(word[from], W))
          ++from;
        if (from >= end)
          for (from = place + 1; from < end && !isReady(word[from], I);)
            ++from;
        if (from >= end || pulls == 8)
          return false;
        shift(word, from, place);
      }
      Op op = word[place];
      if (partOf(op) != F && done[op] == done[op - 1])
        return false;
      uint32_t m = done[op]++;
      held += problem.takenBy(op, m) - problem.givenBy(op, m);
    }
    return true;
  }

  Pool &pool;
  const Problem &problem;
  Random &random;
  Order order;
  Word before;
  std::vector<Arc> path;
  std::vector<uint32_t> done;
};

} // namespace

void synthesis::refine(Pool &pool) {
  Random random(1);
  Refiner refiner(pool, random);
  // Rounds, each longer than the one before, over the best there is by then or
  // another of the best; most of them cool.
  constexpr Time coolings[] = {16, 64, 4, 1024, 16, 32, 2};
  for (uint64_t round = 0; !pool.isDone() && !pool.kept.empty(); ++round) {
    uint64_t actions = std::min<uint64_t>(
        pool.left(), uint64_t(pool.problem.numActions)
                         << std::min<uint64_t>(round / 4, 20));
    actions = std::min(pool.left(), actions * 150);
    size_t which = round % 3 ? 0 : random.below(pool.kept.size());
    Pool::Entry from = pool.kept[which];
    refiner.run(from, actions,
                std::max<Time>(pool.problem.period /
                                   coolings[round % std::size(coolings)],
                               1));
  }
}
