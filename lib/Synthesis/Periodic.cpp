// Searches for orders that repeat with each microbatch, or group of them.
//
// Algorithm: cyclic scheduling, as in modulo scheduling (Rau 1994). A genome
// gives the delay between stages, from which F and I get keys, the times at
// which they are due. A microbatch is due `step` after the one before. A
// steady-state evolutionary search by mutation keeps the 8 best genomes. It
// screens genomes on few microbatches, and decodes the good ones on all.
// Invariant: the decoder makes each order and the runner simulates it, so a bad
// genome costs time but gives no wrong order. Fresh genomes on the grid get up
// to 500 tries until no two F or I of a rank share a slot of the period.
// Cost: 2/5 of the actions that the budget has left.
//
// Example: two ranks with one stage each, F = I = W = 1: period 3, slot 1.
// Without delays F is due at 0, 1 and I at 3, 2 on ranks 0, 1. On rank 0,
// 0 = 3 modulo 3, a collision. A hop of 1 before I makes that I due at 4.
// Microbatch m is due 3 * m later. W has no key; its WaitPolicy places it.
#include "Pool.h"
#include "Random.h"

using namespace ppcc;
using namespace ppcc::synthesis;

using enum Workload::Part;

namespace {

/// When the actions of a microbatch are due, by chunk; and what is done about
/// it. A chunk is the place of a stage among those of its rank.
struct Genome : WaitPolicy {
  bool onGrid = false; ///< Each action takes one slot, or its time.
  bool isStrict = false;
  /// By chunk, F and I: so much more than needed between stages of a chunk;
  /// after the stage before that is of another chunk. In slots, or halves of
  /// them off the grid.
  std::vector<uint8_t> hops, jumps;
  uint8_t stretch = 0; ///< Of the period, in 32nds.
  uint32_t group = 1;  ///< So many microbatches pass a chunk in a row.
  int early = -1;      ///< In slots; any time when negative.
};

class Periodic {
public:
  Periodic(const Problem &problem)
      : problem(problem), load(problem.load), chunks(problem.maxChunks),
        chunkOf(load.stages.size()) {
    for (const auto &stages : load.ofRank)
      for (size_t i = 0; i != stages.size(); ++i)
        chunkOf[stages[i]] = i;
    unsigned parts = load.hasPart(Workload::W) ? 3 : 2;
    slots = parts * chunks;
    slot = std::max<Time>(problem.period / slots, 1);
  }

  /// `steps` grows with what it costs.
  Genome fresh(Random &random, uint64_t &steps) const {
    Genome genome;
    genome.hops.resize(2 * chunks);
    genome.jumps.resize(2 * chunks);
    genome.onGrid = random.below(2);
    for (unsigned tries = 0; tries != 500; ++tries) {
      steps += problem.numOps();
      for (uint8_t &hop : genome.hops)
        hop = random.below(3) ? 0 : random.below(4);
      for (uint8_t &jump : genome.jumps)
        jump = random.below(slots);
      if (!genome.onGrid || !collides(genome))
        break;
    }
    genome.isStrict = random.below(3) == 0;
    genome.stretch = random.below(2) ? 0 : random.below(17);
    if (random.below(4) == 0)
      genome.group = groupSize(random);
    genome.early = random.below(2) ? -1 : int(random.below(slots + 1));
    chooseWeights(genome, random);
    return genome;
  }

  void mutate(Genome &genome, Random &random) const {
    for (uint64_t n = 1 + random.below(3); n != 0; --n)
      switch (random.below(9)) {
      case 0:
      case 1:
        genome.hops[random.below(2 * chunks)] = random.below(4);
        break;
      case 2:
      case 3:
        genome.jumps[random.below(2 * chunks)] = random.below(slots);
        break;
      case 4:
        genome.stretch = random.below(2) ? 0 : random.below(33);
        break;
      case 5:
        genome.early = random.below(2) ? -1 : int(random.below(2 * slots));
        break;
      case 6:
        genome.isStrict = !genome.isStrict;
        break;
      case 7:
        genome.group = random.below(2) ? 1 : groupSize(random);
        break;
      default:
        chooseWeights(genome, random);
      }
  }

  Policy policyOf(const Genome &genome) const {
    Policy policy;
    static_cast<WaitPolicy &>(policy) = genome;
    policy.prefer = Policy::Prefer::Keys;
    policy.isStrict = genome.isStrict;
    policy.keys.resize(problem.numOps());
    Time period = problem.period + problem.period / 32 * genome.stretch;
    policy.group = genome.group;
    policy.step = genome.group == 1 ? period : period / chunks;
    policy.groupStep = genome.group * period;
    if (genome.early >= 0)
      policy.early = genome.early * slot;
    // Behind the last of a group's microbatches in the chunk before.
    Time inGroup = (genome.group - 1) * policy.step;
    auto set = [&](uint32_t s, unsigned part) {
      Op op = opOf(s, part);
      Time due = 0;
      for (Problem::Edge edge : problem.sources(op)) {
        if (partOf(edge.op) != part && part == F)
          continue;
        uint32_t from = stageOf(edge.op);
        Time took = genome.onGrid ? slot : problem.time[edge.op] + edge.latency;
        Time unit = genome.onGrid ? slot : slot / 2;
        unsigned gene = 2 * chunkOf[s] + (part == I);
        bool isHop = partOf(edge.op) == part && chunkOf[from] == chunkOf[s];
        Time more = unit * (isHop ? genome.hops[gene] : genome.jumps[gene]);
        if (!isHop && partOf(edge.op) == part)
          more += std::max<Time>(0, inGroup - lapOf(from, part, policy.keys));
        if (partOf(edge.op) != part && problem.sources(op).size() > 1)
          more = 0; // The gradient from above counts.
        due = std::max(due, policy.keys[edge.op] + took + more);
      }
      policy.keys[op] = due;
    };
    for (uint32_t s = 0; s != load.stages.size(); ++s)
      set(s, F);
    for (uint32_t s = load.stages.size(); s-- != 0;)
      set(s, I);
    return policy;
  }

private:
  /// How long a microbatch has been in the chunk that ends with this stage.
  Time lapOf(uint32_t last, unsigned part,
             const std::vector<Time> &keys) const {
    uint32_t s = last;
    while (true) {
      uint32_t before = ~0u;
      for (Problem::Edge edge : problem.sources(opOf(s, part)))
        if (partOf(edge.op) == part && chunkOf[stageOf(edge.op)] == chunkOf[s])
          before = stageOf(edge.op);
      if (before == ~0u)
        return keys[opOf(last, part)] - keys[opOf(s, part)] + slot;
      s = before;
    }
  }

  uint32_t groupSize(Random &random) const {
    uint32_t ranks = problem.numRanks(), maxMicrobatches = problem.count[0];
    uint32_t sizes[] = {ranks, ranks, (ranks + 1) / 2, ranks + 1, 2, 3};
    return std::max<uint32_t>(std::min(sizes[random.below(6)], maxMicrobatches),
                              1);
  }

  static void chooseWeights(Genome &genome, Random &random) {
    constexpr uint8_t gaps[] = {0, 2, 4, 4};
    genome.weightGap = gaps[random.below(4)];
    genome.lag = random.below(3) ? ~0u : random.below(4);
    genome.lagByRank = random.below(6) == 0;
    genome.balancesIdle = genome.weightGap == 4 && random.below(2);
    genome.gradientWait = genome.balancesIdle && random.below(2) ? 2 : 0;
  }

  /// Whether two actions of a rank are due in one slot of the period.
  bool collides(const Genome &genome) const {
    Policy policy = policyOf(genome);
    for (const auto &stages : load.ofRank) {
      uint64_t taken = 0;
      for (uint32_t s : stages)
        for (Op op : {opOf(s, F), opOf(s, I)}) {
          uint64_t bit = uint64_t(1) << (policy.keys[op] / slot % slots % 64);
          if (taken & bit)
            return true;
          taken |= bit;
        }
    }
    return false;
  }

  const Problem &problem;
  const Workload &load;
  uint32_t chunks;
  std::vector<uint32_t> chunkOf; ///< By stage.
  uint32_t slots;                ///< Of a period.
  Time slot;
};

} // namespace

void synthesis::searchPeriodic(Pool &pool) {
  const Problem &problem = pool.problem;
  Random random(2);
  // On fewer microbatches it shows soon what an order is worth.
  Workload fewer = problem.load;
  uint32_t maxMicrobatches =
      problem.numRanks() + (problem.numRanks() + 1) / 2 + 2;
  bool screens = false;
  for (Workload::Stage &stage : fewer.stages)
    if (stage.microbatches > maxMicrobatches + maxMicrobatches / 2) {
      stage.microbatches = maxMicrobatches;
      screens = true;
    }
  Problem small(fewer, problem.objective, problem.plan);
  SearchOptions unbounded;
  unbounded.budget = ~uint64_t(0);
  Pool screen(small, unbounded);
  Pool &trial = screens ? screen : pool;

  Periodic periodic(problem);
  struct Kept {
    Time value;
    Genome genome;
  };
  std::vector<Kept> kept;
  constexpr size_t maxKept = 8;
  uint64_t end = pool.actions + pool.left() * 2 / 5;
  Order order;
  while (!pool.isDone() && pool.actions < end) {
    bool isFresh = kept.size() < maxKept || random.below(3) == 0;
    Genome genome = isFresh ? periodic.fresh(random, pool.actions)
                            : kept[random.below(kept.size())].genome;
    if (!isFresh)
      periodic.mutate(genome, random);
    Policy policy = periodic.policyOf(genome);
    uint64_t before = trial.actions;
    auto value = trial.decode(policy, order);
    if (screens) {
      pool.actions += trial.actions - before;
      ++pool.evaluations;
    }
    if (!value)
      continue;
    auto place = llvm::lower_bound(
        kept, *value, [](const Kept &one, Time v) { return one.value < v; });
    bool isGood = place - kept.begin() < ptrdiff_t(maxKept) &&
                  (place == kept.end() || place->value != *value);
    if (isGood) {
      kept.insert(place, {*value, genome});
      if (kept.size() > maxKept)
        kept.pop_back();
    }
    if (!screens)
      pool.offer(order, *value, &policy);
    else if (isGood || *value <= kept.front().value + kept.front().value / 200)
      if (auto full = pool.decode(policy, order))
        pool.offer(order, *full, &policy);
  }
}
