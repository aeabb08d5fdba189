// Lower bounds on the time of every order of a workload.
#include "ppcc/Analysis/ResourceBound.h"

using namespace ppcc;

namespace {

using Sum = decimal::Sum;
using Stage = Workload::Stage;
constexpr auto F = Workload::F, I = Workload::I, W = Workload::W;

/// What follows at least behind the actions of a microbatch, too.
struct Paths : AloneTimes {
  Paths(const Workload &load, Objective objective)
      : AloneTimes(load), behindF(load.stages.size()),
        behindI(load.stages.size()) {
    const auto &stages = load.stages;
    bool back = load.hasPart(I);
    // Of the span of a rank, only what it does itself counts.
    if (objective == Objective::Span) {
      for (size_t s = 0; s != stages.size(); ++s) {
        behindI[s] = stages[s].time[W];
        behindF[s] = back ? away[s] - stages[s].time[F] + behindI[s] : 0;
      }
      return;
    }
    for (size_t s = 0; s != stages.size(); ++s) {
      behindI[s] = std::max(behindI[s], stages[s].time[W]);
      pushTo(behindI, stages[s].above, behindI[s] + stages[s].time[I]);
    }
    for (size_t s = stages.size(); s-- != 0;) {
      behindF[s] =
          std::max(behindF[s], back ? stages[s].time[I] + behindI[s] : 0);
      pushTo(behindF, stages[s].below, behindF[s] + stages[s].time[F]);
    }
  }

  std::vector<Time> behindF, behindI; ///< By stage, behind the ends.

private:
  /// The stages that are read have at least `time` behind them.
  static void pushTo(std::vector<Time> &behind, ArrayRef<Workload::Edge> edges,
                     Time time) {
    for (Workload::Edge edge : edges)
      behind[edge.stage] = std::max(behind[edge.stage], time + edge.latency);
  }
};

/// Things with a value and a size, so many of each.
struct Item {
  Time value;
  Amount size;
  uint64_t count;
};

/// The most value that fits, parts of things included; rounded up.
Time mostValue(SmallVector<Item> items, Amount room) {
  llvm::erase_if(items, [](const Item &item) { return item.value == 0; });
  llvm::sort(items, [](const Item &a, const Item &b) {
    return Sum(a.value) * b.size > Sum(b.value) * a.size;
  });
  Sum value = 0, left = std::max<Amount>(room, 0);
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
    behindF = behindI = far;
    for (uint32_t id : ids) {
      const Stage &stage = load.stages[id];
      for (unsigned part = 0; part != Workload::numParts; ++part)
        work += stage.sum[part];
      forwards += stage.sum[F];
      weights += stage.sum[W];
      head = std::min(head, paths.firstF[id]);
      firstI = std::min(firstI, paths.firstI[id]);
      shortest = std::min(shortest, paths.away[id] - stage.time[I]);
      behindF = std::min(behindF, paths.behindF[id]);
      behindI = std::min(behindI, paths.behindI[id]);
    }
    start = isSpan ? 0 : head;
    // A span may begin later.
    toFirstI = isSpan ? shortest : firstI - head;
    if (auto &own = load.room[rank.value]; own && load.hasPart(I))
      room = *own;
  }

  ResourceBound run() {
    byWork();
    if (room && *room >= 0) {
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

  void offer(ResourceBound bound) {
    bound.rank = rank;
    bound.time = bound.head + bound.work + bound.tail;
    if (bound.time > best.time)
      best = bound;
  }

  const Stage &stage(uint32_t id) const { return load.stages[id]; }

  /// The most forwards, by time, that may be begun before the first gradient.
  Time mostForwards(bool &allFit) const {
    allFit = true;
    if (!room)
      return forwards;
    SmallVector<Item> items;
    Sum all = 0;
    Amount smallest = std::numeric_limits<Amount>::max();
    Time longest = 0;
    for (uint32_t id : ids) {
      Amount held = stage(id).heldBehindF();
      items.push_back({stage(id).work[F], held, stage(id).microbatches});
      all += Sum(held) * stage(id).microbatches;
      smallest = std::min(smallest, held);
      longest = std::max(longest, stage(id).work[F]);
    }
    allFit = all <= *room;
    Time most = allFit ? forwards : mostValue(std::move(items), *room);
    if (smallest > 0)
      most = static_cast<Time>(std::min<Sum>(
          most, Sum(std::max<Amount>(*room, 0) / smallest) * longest));
    return std::min(most, forwards);
  }

  /// The most work that may be left once no forward is (`isForward`), or no
  /// gradient.
  Time mostLeft(bool isForward) const {
    Time all = isForward ? work - forwards : weights;
    if (!room)
      return all;
    SmallVector<Item> items;
    Time longI = 0, longW = 0;
    Amount smallF = std::numeric_limits<Amount>::max(), smallI = smallF;
    for (uint32_t id : ids) {
      const Stage &one = stage(id);
      if (isForward)
        items.push_back(
            {one.work[I] + one.work[W], one.heldBehindF(), one.microbatches});
      if (load.hasPart(W))
        items.push_back({one.work[W], one.heldBehindI(), one.microbatches});
      longI = std::max(longI, one.work[I] + one.work[W]);
      longW = std::max(longW, one.work[W]);
      smallF = std::min(smallF, one.heldBehindF());
      smallI = std::min(smallI, one.heldBehindI());
    }
    Time most = std::min(all, mostValue(std::move(items), *room));
    if (smallF > 0 && isForward) {
      // All stages as the most favourable: whole ones fit.
      Amount full = std::max<Amount>(*room, 0);
      Sum whole = 0;
      for (Amount n = std::min<Amount>(full / smallF, 4096); n >= 0; --n) {
        Amount rest = full - n * smallF;
        if (smallI <= 0 && load.hasPart(W))
          return most;
        Sum value = Sum(n) * longI;
        if (load.hasPart(W))
          value += Sum(rest / smallI) * longW;
        whole = std::max(whole, value);
      }
      if (full / smallF <= 4096)
        most = static_cast<Time>(std::min<Sum>(most, whole));
    } else if (!isForward && smallI > 0 && load.hasPart(W)) {
      most =
          static_cast<Time>(std::min<Sum>(most, Sum(*room / smallI) * longW));
    }
    return most;
  }

  /// Each way to begin with each way to end.
  void byWork() {
    bool allFit = true;
    Time most = mostForwards(allFit);
    for (Begin begin : {Begin::FirstForward, Begin::FirstBackward}) {
      bool isForward = begin == Begin::FirstForward;
      if (!isForward && !load.hasPart(I))
        return;
      // Of the work, done by then at most.
      Time done = isForward ? 0 : std::min(toFirstI, most);
      auto offerEnd = [&](End end, Time left, Time tail) {
        ResourceBound bound;
        bound.begin = begin;
        bound.end = end;
        bound.head = isForward ? start : start + toFirstI;
        bound.work = std::max<Time>(work - done - left, 0);
        bound.tail = std::max(left, tail);
        offer(bound);
      };
      offerEnd(End::Work, 0, 0);
      if (load.hasPart(I))
        offerEnd(End::LastBackward, mostLeft(false), behindI);
      if (isForward || !allFit)
        offerEnd(End::LastForward, mostLeft(true), behindF);
    }
  }

  /// Each microbatch takes its room for as long as it is away, at least.
  void byMemoryTime() {
    if (*room == 0)
      return;
    Sum taken = 0;
    for (uint32_t id : ids) {
      const Stage &one = stage(id);
      taken += one.microbatches * (Sum(one.heldBehindF()) * paths.away[id] +
                                   Sum(one.heldBehindI()) * one.time[W]);
    }
    Sum time = taken / *room;
    if (time >= Durations::maxSum)
      return;
    ResourceBound bound;
    bound.kind = Kind::MemoryTime;
    bound.head = start;
    bound.work = static_cast<Time>(time);
    offer(bound);
  }

  /// With one stage: a forward begins when the one so many before it is back.
  void byRounds() {
    uint32_t id = ids.front();
    const Stage &one = stage(id);
    Amount held = one.heldBehindF(), rest = one.heldBehindI();
    if (held <= 0 || *room < held || one.microbatches == 0)
      return;
    uint64_t fit = *room / held, last = one.microbatches - 1;
    if (fit > last)
      return;
    Time round = paths.away[id];
    if (*room - Amount(fit) * held < rest)
      round += one.time[W];
    Time most = Durations::maxSum;
    Sum work = Sum(last % fit) * one.work[F] + Sum(last / fit) * round;
    ResourceBound bound;
    bound.kind = Kind::Rounds;
    bound.head = start;
    bound.work = static_cast<Time>(std::min<Sum>(work, most));
    bound.tail = one.time[F] + behindF;
    bound.rounds = last / fit;
    bound.inRound = fit;
    offer(bound);
  }

  const Workload &load;
  const Paths &paths;
  RankId rank;
  ArrayRef<uint32_t> ids;
  bool isSpan;
  Time work = 0, forwards = 0, weights = 0, start, toFirstI, behindF, behindI;
  std::optional<Amount> room;
  ResourceBound best;
};

} // namespace

std::string ResourceBound::why() const {
  auto time = [](Time value) { return cost::format(value); };
  std::string text = fmt::format("rank {} ", rank.value);
  if (kind == Kind::MemoryTime)
    return text + fmt::format("begins at {} and needs {} for all microbatches "
                              "to pass through its memory",
                              time(head), time(work));
  if (kind == Kind::Rounds)
    return text + fmt::format("begins at {}, holds {} microbatch{} at a time, "
                              "which takes {} for {} rounds, and the last "
                              "one comes back {} later",
                              time(head), inRound, inRound == 1 ? "" : "es",
                              time(work), rounds, time(tail));
  if (kind == Kind::Copies)
    return text + fmt::format("has its first activations at {}, copies to the "
                              "host for {}, and gets back the last for a "
                              "gradient {} before the end",
                              time(head), time(work), time(tail));
  text +=
      begin == Begin::FirstForward
          ? fmt::format("begins at {} and works for {}", time(head), time(work))
          : fmt::format("has its first gradient at {}, with work for {} "
                        "to do",
                        time(head), time(work));
  if (end == End::Work)
    return text;
  return text + fmt::format(" up to its last {}, {} before the end",
                            end == End::LastForward ? "forward" : "gradient",
                            time(tail));
}

AloneTimes::AloneTimes(const Workload &load)
    : firstF(load.stages.size()), firstI(firstF), away(firstF) {
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
    away[s] = stage.time[F] + stage.time[I];
    for (Workload::Edge back : stage.above) {
      const Workload::Edge *forth =
          llvm::lower_bound(stages[back.stage].below, stage.stage,
                            [&](Workload::Edge edge, StageId id) {
                              return stages[edge.stage].stage.value < id.value;
                            });
      assert(stages[forth->stage].stage == stage.stage);
      away[s] =
          std::max(away[s], stage.time[F] + forth->latency + away[back.stage] +
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

Time ppcc::gapOf(Time time, const ResourceBound &bound) {
  return bound.time == 0 ? 0
                         : static_cast<Time>(Sum(time - bound.time) *
                                             cost::unit / bound.time);
}
