// Searches for periodic orders: those that repeat with each microbatch, or with
// each group of them.
//
// Algorithm: an evolutionary search over the parameters of a list scheduler. A
// genome holds delays by chunk and kind. They give each F and I (input
// gradient) of the first microbatch a planned time, its key; as in modulo
// scheduling (Rau, "Iterative modulo scheduling", MICRO 1994) those of later
// microbatches, or groups, repeat at an initiation interval. The decoder
// prefers actions with small keys, and places W (weight gradients) by the
// genome's WeightPolicy. The 8 best genomes of distinct value are kept; once
// there are 8, a third of the candidates are new, the rest mutants of those.
// If there are many microbatches, genomes are screened on few of them.
// Invariant: every order comes from the decoder, so a bad genome gives a slow
// order or none, never an invalid one.
// Cost: about 2/5 of the budget that is left, in simulated actions.
//
// Example: two ranks with one stage each, F = I = W = 1: period 3, slot 1.
// Without delays the keys of F are 0, 1 and those of I 3, 2 on ranks 0, 1. On
// rank 0, 3 = 0 modulo 3: F and I want the same slot. A delay of 1 before that
// I makes its key 4, and 4 = 1 modulo 3 is free.
#include "Pool.h"
#include "Random.h"

using namespace ppcc;
using namespace ppcc::synthesis;

using enum Workload::Part;

namespace {

/// The parameters of a periodic order. A chunk is the index of a stage among
/// those of its rank.
struct Genome : WeightPolicy {
  bool onGrid = false;   ///< Plan each action as one slot, whatever its time.
  bool isStrict = false; ///< Idle rather than run past a smaller key.
  /// Indexed by 2 * chunk + (part == I), in slots if `onGrid`, else in halves.
  std::vector<uint8_t> chunkDelays; ///< After a stage of the same chunk.
  std::vector<uint8_t> otherDelays; ///< After another chunk, or from F to I.
  uint8_t stretch = 0;              ///< Lengthens the period by so many 32nds.
  uint32_t group = 1; ///< Microbatches that a chunk runs before the next does.
  /// By how many slots an action may start before its key; no limit if
  /// negative.
  int early = -1;
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
    slotTime = std::max<Time>(problem.period / slots, 1);
  }

  /// A random genome; if `onGrid`, with delays by which no two F or I of a rank
  /// share a slot of the period, if 500 tries find such. Adds its work to
  /// `steps`.
  Genome fresh(Random &random, uint64_t &steps) const {
    Genome genome;
    genome.chunkDelays.resize(2 * chunks);
    genome.otherDelays.resize(2 * chunks);
    genome.onGrid = random.below(2);
    for (unsigned tries = 0; tries != 500; ++tries) {
      steps += problem.numOps();
      for (uint8_t &delay : genome.chunkDelays)
        delay = random.below(3) ? 0 : random.below(4);
      for (uint8_t &delay : genome.otherDelays)
        delay = random.below(slots);
      if (!genome.onGrid || !collides(genome))
        break;
    }
    genome.isStrict = random.below(3) == 0;
    genome.stretch = random.below(2) ? 0 : random.below(17);
    if (random.below(4) == 0)
      genome.group = groupSize(random);
    genome.early = random.below(2) ? -1 : int(random.below(slots + 1));
    chooseWeightPolicy(genome, random);
    return genome;
  }

  void mutate(Genome &genome, Random &random) const {
    for (uint64_t n = 1 + random.below(3); n != 0; --n)
      switch (random.below(9)) {
      case 0:
      case 1:
        genome.chunkDelays[random.below(2 * chunks)] = random.below(4);
        break;
      case 2:
      case 3:
        genome.otherDelays[random.below(2 * chunks)] = random.below(slots);
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
        chooseWeightPolicy(genome, random);
      }
  }

  Policy policyOf(const Genome &genome) const {
    Policy policy;
    static_cast<WeightPolicy &>(policy) = genome;
    policy.prefer = Policy::Prefer::Keys;
    policy.isStrict = genome.isStrict;
    policy.keys.resize(problem.numOps());
    Time period = problem.period + problem.period / 32 * genome.stretch;
    policy.group = genome.group;
    policy.step = genome.group == 1 ? period : period / chunks;
    policy.groupStep = genome.group * period;
    if (genome.early >= 0)
      policy.early = genome.early * slotTime;
    // From the first to the last microbatch of a group in one chunk.
    Time groupSpan = (genome.group - 1) * policy.step;
    auto set = [&](uint32_t s, unsigned part) {
      Op op = opOf(s, part);
      Time due = 0;
      for (Problem::Edge edge : problem.sources(op)) {
        if (partOf(edge.op) != part && part == F)
          continue;
        uint32_t from = stageOf(edge.op);
        Time duration =
            genome.onGrid ? slotTime : problem.time[edge.op] + edge.latency;
        Time unit = genome.onGrid ? slotTime : slotTime / 2;
        unsigned gene = 2 * chunkOf[s] + (part == I);
        bool isSameChunk =
            partOf(edge.op) == part && chunkOf[from] == chunkOf[s];
        Time extra = unit * (isSameChunk ? genome.chunkDelays[gene]
                                         : genome.otherDelays[gene]);
        if (!isSameChunk && partOf(edge.op) == part)
          extra += std::max<Time>(0, groupSpan -
                                         timeInChunk(from, part, policy.keys));
        if (partOf(edge.op) != part && problem.sources(op).size() > 1)
          extra = 0; // The gradient of the next stage decides.
        due = std::max(due, policy.keys[edge.op] + duration + extra);
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
  /// The time that a microbatch spends in the chunk that ends with stage
  /// `last`.
  Time timeInChunk(uint32_t last, unsigned part,
                   const std::vector<Time> &keys) const {
    uint32_t s = last;
    while (true) {
      uint32_t before = ~0u;
      for (Problem::Edge edge : problem.sources(opOf(s, part)))
        if (partOf(edge.op) == part && chunkOf[stageOf(edge.op)] == chunkOf[s])
          before = stageOf(edge.op);
      if (before == ~0u)
        return keys[opOf(last, part)] - keys[opOf(s, part)] + slotTime;
      s = before;
    }
  }

  uint32_t groupSize(Random &random) const {
    uint32_t ranks = problem.numRanks(), maxMicrobatches = problem.count[0];
    uint32_t sizes[] = {ranks, ranks, (ranks + 1) / 2, ranks + 1, 2, 3};
    return std::max<uint32_t>(std::min(sizes[random.below(6)], maxMicrobatches),
                              1);
  }

  static void chooseWeightPolicy(Genome &genome, Random &random) {
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
          uint64_t bit = uint64_t(1)
                         << (policy.keys[op] / slotTime % slots % 64);
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
  uint32_t slots;                ///< The number of slots in a period.
  Time slotTime;
};

} // namespace

void synthesis::searchPeriodic(Pool &pool) {
  const Problem &problem = pool.problem;
  Random random(2);
  // Few microbatches are cheap to simulate, and predict the makespan of many.
  Workload fewer = problem.load;
  uint32_t maxMicrobatches =
      problem.numRanks() + (problem.numRanks() + 1) / 2 + 2;
  bool isScreening = false;
  for (Workload::Stage &stage : fewer.stages)
    if (stage.microbatches > maxMicrobatches + maxMicrobatches / 2) {
      stage.microbatches = maxMicrobatches;
      isScreening = true;
    }
  Problem small(fewer, problem.objective, problem.plan);
  SearchOptions unbounded;
  unbounded.budget = ~uint64_t(0);
  Pool screen(small, unbounded);
  Pool &trial = isScreening ? screen : pool;

  Periodic periodic(problem);
  struct Candidate {
    Time value;
    Genome genome;
  };
  std::vector<Candidate> kept;
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
    auto value =
        trial.decode(policy, order,
                     kept.size() < maxKept ? std::numeric_limits<Time>::max()
                                           : kept.back().value);
    if (isScreening) {
      pool.actions += trial.actions - before;
      ++pool.evaluations;
    }
    if (!value)
      continue;
    auto place =
        llvm::lower_bound(kept, *value, [](const Candidate &one, Time v) {
          return one.value < v;
        });
    bool isGood = place - kept.begin() < ptrdiff_t(maxKept) &&
                  (place == kept.end() || place->value != *value);
    if (isGood) {
      kept.insert(place, {*value, genome});
      if (kept.size() > maxKept)
        kept.pop_back();
    }
    if (!isScreening)
      pool.offer(order, *value, &policy);
    // Within half a percent of the best, too.
    else if (isGood || *value <= kept.front().value + kept.front().value / 200)
      if (auto full = pool.decode(policy, order, pool.cutoff()))
        pool.offer(order, *full, &policy);
  }
}
