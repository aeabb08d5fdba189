// Builds an order of actions from a policy, within the memory of each rank.
//
// Algorithm: an event-driven parallel schedule-generation scheme (Kolisch
// 1996). A tree holds the times at which ranks are free or an input arrives.
// Each rank that is free starts its best action that is ready, or waits. What
// was ready before a wait starts then: an order takes as long as it was to
// make.
//
// Memory: the banker's algorithm (Dijkstra, EWD 108). isSafe() lets a forward
// begin only if all microbatches in flight can still finish on the rank, the
// oldest first. The later ones use what the earlier ones free.
// Invariant: an action starts after all its sources have ended, and F and I
// only with memory for them.
// Cost: O(chunks + log ranks) a decision, and O(chunks * microbatches in
// flight) for each isSafe(). Strict keys also sort the actions of a rank.
//
// Example: stages 0 and 1 on ranks 0 and 1, M = 3, F = I = 1, no W. There is
// memory for 2 activations on rank 0 and for 1 on rank 1; gradients first.
// Rank 0: F0 F1 I0 F2 I1 I2, as 1F1B; F2 waits until I0 has freed memory.
// Rank 1: F0 I0 F1 I1 F2 I2.
#include "ppcc/Synthesis/Decode.h"

using namespace ppcc;
using namespace ppcc::synthesis;

using enum Workload::Part;
static constexpr Time never = std::numeric_limits<Time>::max() / 2;
static constexpr Op none = ~0u;

void Decoder::setWake(Time at, uint32_t rank) {
  size_t node = wakes.size() / 2 + rank;
  wakes[node] = {at, rank};
  while ((node /= 2) != 0)
    wakes[node] = wakes[2 * node + 1].first < wakes[2 * node].first
                      ? wakes[2 * node + 1]
                      : wakes[2 * node];
}

std::optional<Time> Decoder::run(const Policy &given, Order &result,
                                 Time cutoff) {
  policy = &given;
  order = &result;
  uint32_t numRanks = problem.numRanks();
  result.resize(numRanks);
  ranks.resize(numRanks);
  for (auto [rank, state] : llvm::enumerate(ranks)) {
    result[rank].clear();
    state.weights.clear();
    state.sorted.clear();
    state = {.weights = std::move(state.weights),
             .sorted = std::move(state.sorted)};
    state.value = problem.work[rank];
    if (!given.isStrict)
      continue;
    for (uint32_t s : problem.load.ofRank[rank])
      for (Op op : {opOf(s, F), opOf(s, I)})
        for (uint32_t m = 0; m != problem.count[op]; ++m)
          state.sorted.emplace_back(op, m);
    llvm::stable_sort(state.sorted, [&](auto &a, auto &b) {
      return given.due(a.first, a.second) < given.due(b.first, b.second);
    });
  }
  maxIdle = 0;
  issued.assign(problem.numOps(), 0);
  arrivals.assign(problem.numOps(), never);
  for (Op op = 0; op != problem.numOps(); ++op)
    updateArrival(op);
  wakes.assign(2 * llvm::PowerOf2Ceil(numRanks), {never, 0});
  for (uint32_t rank = 0; rank != numRanks; ++rank)
    setWake(0, rank);
  while (wakes[1].first != never) {
    auto [now, rank] = wakes[1];
    setWake(decide(rank, now), rank);
    if (ranks[rank].value >= cutoff)
      return std::nullopt;
  }
  if (std::reduce(issued.begin(), issued.end()) != problem.numActions)
    return std::nullopt;
  Time value = 0;
  for (auto [rank, state] : llvm::enumerate(ranks))
    if (!result[rank].empty())
      value = std::max(value, state.value);
  return value;
}

void Decoder::updateArrival(Op op) {
  uint32_t m = issued[op];
  if (m == problem.count[op])
    return void(arrivals[op] = never);
  Time arrival = 0;
  for (Problem::Edge edge : problem.sources(op)) {
    if (issued[edge.op] <= m)
      return void(arrivals[op] = never);
    arrival =
        std::max(arrival, ends[problem.first[edge.op] + m] + edge.latency);
  }
  arrivals[op] = arrival;
}

bool Decoder::isSafe(uint32_t stage, uint32_t rank) {
  Amount memoryBudget = problem.memoryBudget[rank], claim = problem.claim[rank];
  Amount left = memoryBudget - problem.transient[rank] - ranks[rank].reserved -
                problem.stashedBy(stage, issued[opOf(stage, F)]);
  if (memoryBudget == Problem::unlimited || left >= claim)
    return true;
  if (left < 0)
    return false;
  const auto &stages = problem.load.ofRank[rank];
  if (stages.size() == 1)
    return true;
  uint32_t oldest = ~0u, newest = issued[opOf(stage, F)] + 1;
  for (uint32_t s : stages) {
    if (issued[opOf(s, I)] != problem.count[opOf(s, I)])
      oldest = std::min(oldest, issued[opOf(s, I)]);
    newest = std::max(newest, issued[opOf(s, F)]);
  }
  for (uint32_t m = oldest; m < newest && left < claim; ++m) {
    looks += stages.size();
    Amount need = 0, live = 0;
    for (uint32_t s : stages) {
      if (m >= problem.count[opOf(s, F)])
        continue;
      if (m >= issued[opOf(s, F)] + (s == stage))
        need += problem.stashedBy(s, m);
      else if (m >= issued[opOf(s, I)])
        live += problem.stashedBy(s, m);
    }
    if (need > left)
      return false;
    left += live;
  }
  return true;
}

bool Decoder::isBetter(Op op, Op best, bool didForward) const {
  if (best == none)
    return true;
  if (policy->prefer == Policy::Prefer::Keys)
    return policy->due(op, issued[op]) < policy->due(best, issued[best]);
  if (partOf(op) != partOf(best)) {
    bool forwards =
        policy->prefer == Policy::Prefer::Forwards ||
        (policy->prefer == Policy::Prefer::Alternate && !didForward);
    return (partOf(op) == F) == forwards;
  }
  return (stageOf(op) > stageOf(best)) == policy->deepFirst;
}

Time Decoder::decide(uint32_t rank, Time now) {
  Rank &state = ranks[rank];
  const auto &stages = problem.load.ofRank[rank];
  Amount memoryBudget = problem.memoryBudget[rank];
  auto doWeight = [&] {
    return issue(opOf(state.weights[state.oldestWeight++], W));
  };
  looks += 2 + stages.size();
  uint32_t lag = policy->lagByRank ? rank : policy->lag;
  if (state.pending() > lag)
    return doWeight();
  Op best = none;
  Time next = never, nextGradient = never;
  auto consider = [&](Op op) {
    Time arrival = arrivals[op];
    if (arrival == never)
      return;
    if (partOf(op) == F) {
      uint32_t s = stageOf(op);
      if (!policy->caps.empty() && problem.count[op + 1] != 0 &&
          issued[op] - issued[op + 1] >= policy->caps[s])
        return;
      if (policy->prefer == Policy::Prefer::Keys && !policy->isStrict)
        arrival =
            std::max(arrival, policy->due(op, issued[op]) - policy->early);
    } else {
      nextGradient = std::min(nextGradient, arrival);
    }
    if (arrival > now) {
      next = std::min(next, arrival);
      return;
    }
    if (!isBetter(op, best, state.didForward))
      return;
    if (partOf(op) == F && !isSafe(stageOf(op), rank))
      return;
    best = op;
  };
  if (policy->isStrict) {
    // The first in the order; when it is not safe, the first gradient.
    auto isIssued = [&](auto &one) { return one.second < issued[one.first]; };
    while (state.next != state.sorted.size() &&
           isIssued(state.sorted[state.next]))
      ++state.next;
    for (auto [op, m] : ArrayRef(state.sorted).drop_front(state.next)) {
      if (m != issued[op])
        continue;
      if (partOf(op) == F && !isSafe(stageOf(op), rank))
        continue;
      consider(op);
      break;
    }
  } else {
    for (uint32_t s : stages) {
      consider(opOf(s, F));
      consider(opOf(s, I));
    }
    // A gradient that comes soon is worth a while.
    if (best != none && partOf(best) == F && policy->gradientWait != 0 &&
        nextGradient > now && nextGradient != never) {
      Time wait = nextGradient - now, time = problem.time[best];
      if (policy->balancesIdle ? wait < time && wait <= maxIdle - state.idle
                               : wait < time * Time(policy->gradientWait) / 4) {
        next = nextGradient;
        best = none;
      }
    }
  }
  if (best != none) {
    if (state.live + problem.allocatedBy(best, issued[best]) <= memoryBudget)
      return issue(best);
    if (state.pending() != 0)
      return doWeight();
  }
  if (state.pending() != 0) {
    Time time = problem.time[opOf(state.weights[state.oldestWeight], W)];
    if (next == never || next - now >= time * Time(policy->weightGap) / 4 ||
        (policy->balancesIdle && next - now > maxIdle - state.idle))
      return doWeight();
  }
  return next;
}

Time Decoder::issue(Op op) {
  uint32_t rank = problem.rank[op];
  Rank &state = ranks[rank];
  uint32_t m = issued[op]++;
  // The rank may have waited for something else.
  Time start = std::max(state.free, arrivals[op]),
       end = start + problem.timeOf(op, m), idle = start - state.free;
  bool isFirst = (*order)[rank].empty();
  if (!isFirst)
    maxIdle = std::max(maxIdle, state.idle += idle);
  if (!isFirst || problem.objective == Objective::Makespan)
    state.value += idle;
  state.free = end;
  state.live += problem.allocatedBy(op, m) - problem.freedBy(op, m);
  if (partOf(op) == F)
    state.reserved += problem.stashedBy(stageOf(op), m);
  else if (partOf(op) == I)
    state.reserved -= problem.stashedBy(stageOf(op), m);
  if (partOf(op) != W)
    state.didForward = partOf(op) == F;
  ends[problem.first[op] + m] = end;
  (*order)[rank].push_back(op);
  updateArrival(op);
  if (partOf(op) == I && problem.count[op + 1] != 0)
    state.weights.push_back(stageOf(op));
  for (Problem::Edge edge : problem.readers(op)) {
    if (issued[edge.op] + 1 != issued[op])
      continue;
    updateArrival(edge.op);
    if (uint32_t other = problem.rank[edge.op];
        other != rank && arrivals[edge.op] != never) {
      Time at = std::max(arrivals[edge.op], ranks[other].free);
      if (at < wakes[wakes.size() / 2 + other].first)
        setWake(at, other);
    }
  }
  return end;
}
