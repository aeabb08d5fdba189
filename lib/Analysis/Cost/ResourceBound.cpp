// Computes lower bounds on the makespan, or the span, of every order of a
// placement.
//
// Algorithm: for each rank the one-machine bound head + work + tail (J.
// Carlier, EJOR 11, 1982). A fractional knapsack (G. B. Dantzig, Oper. Res. 5,
// 1957) limits the work that memory allows before the first gradient and after
// the last forward or gradient. Two more bounds use memory: memory times time
// (energetic reasoning, Baptiste et al. 2001), and, for a rank with one stage,
// rounds of as many microbatches as fit.
// Invariant: each bound relaxes the problem, so no order is shorter; the
// largest is taken.
// Cost: O(stages + edges) apart from sorts and searches, and at most 2 * 4097
// steps a rank that count whole microbatches in memory.
// Example: P = 4, M = 8, F = 1, B = 2, no latency.
//   rank 3: head 3 (F on ranks 0 to 2), work 8 * 3 = 24, tail 6 (B on ranks 2
//   to 0): 33. This is the makespan of 1F1B, (M + P - 1) * 3.
#include "ppcc/Analysis/Cost/ResourceBound.h"

using namespace ppcc;

namespace {

using Sum = decimal::Sum;
using Stage = Workload::Stage;
constexpr auto F = Workload::F, I = Workload::I, W = Workload::W;

/// What follows at least after the actions of a microbatch, too.
struct Paths : UncontendedTimes {
  Paths(const Workload &load, Objective objective)
      : UncontendedTimes(load), tailAfterF(load.stages.size()),
        tailAfterI(load.stages.size()) {
    const auto &stages = load.stages;
    bool back = load.hasPart(I);
    // Of the span of a rank, only what it does itself counts.
    if (objective == Objective::Span) {
      for (size_t s = 0; s != stages.size(); ++s) {
        tailAfterI[s] = stages[s].time[W];
        tailAfterF[s] =
            back ? roundTrip[s] - stages[s].time[F] + tailAfterI[s] : 0;
      }
      return;
    }
    for (size_t s = 0; s != stages.size(); ++s) {
      tailAfterI[s] = std::max(tailAfterI[s], stages[s].time[W]);
      pushTo(tailAfterI, stages[s].above, tailAfterI[s] + stages[s].time[I]);
    }
    for (size_t s = stages.size(); s-- != 0;) {
      tailAfterF[s] =
          std::max(tailAfterF[s], back ? stages[s].time[I] + tailAfterI[s] : 0);
      pushTo(tailAfterF, stages[s].below, tailAfterF[s] + stages[s].time[F]);
    }
  }

  std::vector<Time> tailAfterF, tailAfterI; ///< By stage, after the ends.

private:
  /// The stages that are read have at least `time` after them.
  static void pushTo(std::vector<Time> &after, ArrayRef<Workload::Edge> edges,
                     Time time) {
    for (Workload::Edge edge : edges)
      after[edge.stage] = std::max(after[edge.stage], time + edge.latency);
  }
};

/// Things with a value and a size, so many of each.
struct Item {
  Time value;
  Amount size;
  uint64_t count;
};

/// The most value that fits, parts of things included; rounded up.
Time fractionalKnapsack(SmallVector<Item> items, Amount memoryBudget) {
  llvm::erase_if(items, [](const Item &item) { return item.value == 0; });
  llvm::sort(items, [](const Item &a, const Item &b) {
    return Sum(a.value) * b.size > Sum(b.value) * a.size;
  });
  Sum value = 0, left = std::max<Amount>(memoryBudget, 0);
  for (const Item &item : items) {
    Sum size = Sum(item.size) * item.count;
    if (size <= left) {
      value += Sum(item.value) * item.count;
      left -= size;
      continue;
    }
    value += (Sum(item.value) * left + item.size - 1) / item.size;
    break;
  }
  return static_cast<Time>(std::min<Sum>(value, Durations::maxSum));
}

/// The bounds of one rank.
class RankBound {
public:
  RankBound(const Workload &load, const Paths &paths, RankId rank,
            Objective objective)
      : load(load), paths(paths), rank(rank), ids(load.ofRank[rank.value]),
        isSpan(objective == Objective::Span) {
    constexpr Time far = std::numeric_limits<Time>::max();
    Time head = far, firstI = far, shortest = far;
    tailAfterF = tailAfterI = far;
    for (uint32_t id : ids) {
      const Stage &stage = load.stages[id];
      for (unsigned part = 0; part != Workload::numParts; ++part)
        work += stage.sum[part];
      forwards += stage.sum[F];
      weights += stage.sum[W];
      head = std::min(head, paths.firstF[id]);
      firstI = std::min(firstI, paths.firstI[id]);
      shortest = std::min(shortest, paths.roundTrip[id] - stage.time[I]);
      tailAfterF = std::min(tailAfterF, paths.tailAfterF[id]);
      tailAfterI = std::min(tailAfterI, paths.tailAfterI[id]);
    }
    start = isSpan ? 0 : head;
    // A span may begin later.
    toFirstI = isSpan ? shortest : firstI - head;
    if (auto &own = load.memoryBudget[rank.value]; own && load.hasPart(I))
      memoryBudget = *own;
  }

  ResourceBound run() {
    byWork();
    if (memoryBudget && *memoryBudget >= 0) {
      byMemoryTime();
      if (ids.size() == 1)
        byRounds();
    }
    return best;
  }

private:
  using Begin = ResourceBound::Begin;
  using End = ResourceBound::End;
  using Kind = ResourceBound::Kind;

  void keepIfBetter(ResourceBound bound) {
    bound.rank = rank;
    bound.time = bound.head + bound.work + bound.tail;
    if (bound.time > best.time)
      best = bound;
  }

  const Stage &stage(uint32_t id) const { return load.stages[id]; }

  /// The most forwards, by time, that may be begun before the first gradient.
  Time maxForwards(bool &allFit) const {
    allFit = true;
    if (!memoryBudget)
      return forwards;
    SmallVector<Item> items;
    Sum all = 0;
    Amount smallest = std::numeric_limits<Amount>::max();
    Time longest = 0;
    for (uint32_t id : ids) {
      Amount held = stage(id).heldAfterF();
      items.push_back({stage(id).maxWork[F], held, stage(id).microbatches});
      all += Sum(held) * stage(id).microbatches;
      smallest = std::min(smallest, held);
      longest = std::max(longest, stage(id).maxWork[F]);
    }
    allFit = all <= *memoryBudget;
    Time maxWork =
        allFit ? forwards : fractionalKnapsack(std::move(items), *memoryBudget);
    if (smallest > 0)
      maxWork = static_cast<Time>(std::min<Sum>(
          maxWork,
          Sum(std::max<Amount>(*memoryBudget, 0) / smallest) * longest));
    return std::min(maxWork, forwards);
  }

  /// The most work that may be left once no forward is (`isForward`), or no
  /// gradient.
  Time maxRemainingWork(bool isForward) const {
    Time all = isForward ? work - forwards : weights;
    if (!memoryBudget)
      return all;
    SmallVector<Item> items;
    Time longI = 0, longW = 0;
    Amount smallF = std::numeric_limits<Amount>::max(), smallI = smallF;
    for (uint32_t id : ids) {
      const Stage &one = stage(id);
      if (isForward)
        items.push_back({one.maxWork[I] + one.maxWork[W], one.heldAfterF(),
                         one.microbatches});
      if (load.hasPart(W))
        items.push_back({one.maxWork[W], one.heldAfterI(), one.microbatches});
      longI = std::max(longI, one.maxWork[I] + one.maxWork[W]);
      longW = std::max(longW, one.maxWork[W]);
      smallF = std::min(smallF, one.heldAfterF());
      smallI = std::min(smallI, one.heldAfterI());
    }
    Time maxWork =
        std::min(all, fractionalKnapsack(std::move(items), *memoryBudget));
    if (smallF > 0 && isForward) {
      // All stages as the most favourable: whole ones fit.
      Amount full = std::max<Amount>(*memoryBudget, 0);
      Sum whole = 0;
      for (Amount n = std::min<Amount>(full / smallF, 4096); n >= 0; --n) {
        Amount rest = full - n * smallF;
        if (smallI <= 0 && load.hasPart(W))
          return maxWork;
        Sum value = Sum(n) * longI;
        if (load.hasPart(W))
          value += Sum(rest / smallI) * longW;
        whole = std::max(whole, value);
      }
      if (full / smallF <= 4096)
        maxWork = static_cast<Time>(std::min<Sum>(maxWork, whole));
    } else if (!isForward && smallI > 0 && load.hasPart(W)) {
      maxWork = static_cast<Time>(
          std::min<Sum>(maxWork, Sum(*memoryBudget / smallI) * longW));
    }
    return maxWork;
  }

  /// Each way to begin with each way to end.
  void byWork() {
    bool allFit = true;
    Time maxWork = maxForwards(allFit);
    for (Begin begin : {Begin::FirstForward, Begin::FirstBackward}) {
      bool isForward = begin == Begin::FirstForward;
      if (!isForward && !load.hasPart(I))
        return;
      // Of the work, done by then at most.
      Time done = isForward ? 0 : std::min(toFirstI, maxWork);
      auto offerEnd = [&](End end, Time left, Time tail) {
        ResourceBound bound;
        bound.begin = begin;
        bound.end = end;
        bound.head = isForward ? start : start + toFirstI;
        bound.work = std::max<Time>(work - done - left, 0);
        bound.tail = std::max(left, tail);
        keepIfBetter(bound);
      };
      offerEnd(End::Work, 0, 0);
      if (load.hasPart(I))
        offerEnd(End::LastBackward, maxRemainingWork(false), tailAfterI);
      if (isForward || !allFit)
        offerEnd(End::LastForward, maxRemainingWork(true), tailAfterF);
    }
  }

  /// Each microbatch takes its room for as long as it is away, at least.
  void byMemoryTime() {
    if (*memoryBudget == 0)
      return;
    Sum taken = 0;
    for (uint32_t id : ids) {
      const Stage &one = stage(id);
      taken += one.microbatches * (Sum(one.heldAfterF()) * paths.roundTrip[id] +
                                   Sum(one.heldAfterI()) * one.time[W]);
    }
    Sum time = taken / *memoryBudget;
    if (time >= Durations::maxSum)
      return;
    ResourceBound bound;
    bound.kind = Kind::MemoryTime;
    bound.head = start;
    bound.work = static_cast<Time>(time);
    keepIfBetter(bound);
  }

  /// With one stage: a forward begins when the one so many before it is back.
  void byRounds() {
    uint32_t id = ids.front();
    const Stage &one = stage(id);
    Amount held = one.heldAfterF(), rest = one.heldAfterI();
    if (held <= 0 || *memoryBudget < held || one.microbatches == 0)
      return;
    uint64_t fit = *memoryBudget / held, last = one.microbatches - 1;
    if (fit > last)
      return;
    Time round = paths.roundTrip[id];
    if (*memoryBudget - Amount(fit) * held < rest)
      round += one.time[W];
    Time maxWork = Durations::maxSum;
    Sum work = Sum(last % fit) * one.work[F] + Sum(last / fit) * round;
    ResourceBound bound;
    bound.kind = Kind::Rounds;
    bound.head = start;
    bound.work = static_cast<Time>(std::min<Sum>(work, maxWork));
    bound.tail = one.time[F] + tailAfterF;
    bound.rounds = last / fit;
    bound.inRound = fit;
    keepIfBetter(bound);
  }

  const Workload &load;
  const Paths &paths;
  RankId rank;
  ArrayRef<uint32_t> ids;
  bool isSpan;
  Time work = 0, forwards = 0, weights = 0, start, toFirstI, tailAfterF,
       tailAfterI;
  std::optional<Amount> memoryBudget;
  ResourceBound best;
};

} // namespace

std::string ResourceBound::why(const Units &units) const {
  auto time = [&](Time value) { return units.time(value); };
  if (kind == Kind::Search)
    return fmt::format("an exact search of {} node{} finds nothing shorter",
                       rounds, rounds == 1 ? "" : "s");
  std::string text = fmt::format("rank {} ", rank.value);
  if (kind == Kind::MemoryTime)
    return text + fmt::format("starts at {} and needs {} for all microbatches "
                              "to pass through its memory",
                              time(head), time(work));
  if (kind == Kind::Rounds)
    return text + fmt::format("starts at {}, holds {} microbatch{} at a time, "
                              "needs {} for {} rounds, and the last one "
                              "takes {} more",
                              time(head), inRound, inRound == 1 ? "" : "es",
                              time(work), rounds, time(tail));
  if (kind == Kind::Copies)
    return text + fmt::format("has its first activations at {}, copies to the "
                              "host and back for {}, and the last copy ends "
                              "{} before the end",
                              time(head), time(work), time(tail));
  text +=
      begin == Begin::FirstForward
          ? fmt::format("starts at {} and works for {}", time(head), time(work))
          : fmt::format("receives its first gradient at {} and works for {}",
                        time(head), time(work));
  if (end == End::Work)
    return text;
  return text + fmt::format(" until its last {}, {} before the end",
                            end == End::LastForward ? "forward" : "gradient",
                            time(tail));
}

UncontendedTimes::UncontendedTimes(const Workload &load)
    : firstF(load.stages.size()), firstI(firstF), roundTrip(firstF) {
  const auto &stages = load.stages;
  auto endOf = [&](const std::vector<Time> &begins, Workload::Part part,
                   Workload::Edge edge) {
    return begins[edge.stage] + stages[edge.stage].time[part] + edge.latency;
  };
  for (size_t s = 0; s != stages.size(); ++s)
    for (Workload::Edge edge : stages[s].below)
      firstF[s] = std::max(firstF[s], endOf(firstF, F, edge));
  for (size_t s = stages.size(); s-- != 0;) {
    firstI[s] = firstF[s] + stages[s].time[F];
    for (Workload::Edge edge : stages[s].above)
      firstI[s] = std::max(firstI[s], endOf(firstI, I, edge));
  }
  // F waits as long as it may: what I waits for besides does not count.
  for (size_t s = stages.size(); s-- != 0;) {
    const Workload::Stage &stage = stages[s];
    roundTrip[s] = stage.time[F] + stage.time[I];
    for (Workload::Edge back : stage.above) {
      const Workload::Edge *forth =
          llvm::lower_bound(stages[back.stage].below, stage.stage,
                            [&](Workload::Edge edge, StageId id) {
                              return stages[edge.stage].stage.value < id.value;
                            });
      assert(stages[forth->stage].stage == stage.stage);
      roundTrip[s] = std::max(roundTrip[s], stage.time[F] + forth->latency +
                                                roundTrip[back.stage] +
                                                back.latency + stage.time[I]);
    }
  }
}

ResourceBound ppcc::resourceBoundOf(const Workload &load, RankId rank,
                                    Objective objective) {
  return RankBound(load, Paths(load, objective), rank, objective).run();
}

ResourceBound ppcc::resourceBound(const Workload &load, Objective objective) {
  Paths paths(load, objective);
  ResourceBound best;
  for (RankId rank : firstIds<RankId>(load.ofRank.size()))
    if (!load.ofRank[rank.value].empty())
      if (ResourceBound bound = RankBound(load, paths, rank, objective).run();
          bound.time > best.time)
        best = bound;
  return best;
}

Time ppcc::gapOf(Time time, Time least) {
  return least == 0 ? 0
                    : static_cast<Time>(Sum(time - least) * cost::unit / least);
}
