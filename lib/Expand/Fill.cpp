// Places deferred weight gradients (W) where ranks would idle and, under a cap
// or a memory limit, decides how far forwards run ahead of backwards.
//
// Algorithm: event-driven list scheduling of all ranks. Under limits, a rank
// runs a forward if its stage is below its cap and the banker's algorithm
// (Dijkstra, EWD 108) finds the state safe, else a backward. If it must idle,
// it runs a W of which at least half fits the gap, or any W if no end of the
// gap is known. Caps follow Little's law (Oper. Res. 9, 1961): forwards in
// flight = slices + rate * round trip.
// Invariant: each grant leaves a safe state: the microbatches can end one by
// one, oldest first. Without limits rows keep their order.
// Cost: O(actions * log ranks * chunks * microbatches in flight), charged to
// the evaluator.
// Example: P = 4, F = I = 1, no latency, F holds 1 unit, limit 4 on each rank.
//   round trips 6, 4, 2, 0 (from the end of F to the start of I)
//   rate (4 - 1) / 6 = 1/2 on rank 0, the least of all ranks
//   caps 1 + round trip / 2 = 4, 3, 2, 1
// A gap of 2 is filled by a W of 3, as half of it fits, but not by one of 5.
#include "ResourcePool.h"
#include "Steps.h"

#include "ppcc/Analysis/Cost/Durations.h"
#include "ppcc/Analysis/Index/PairNumbering.h"
#include "ppcc/Analysis/Report/MemoryCurve.h"

using namespace ppcc;

namespace {

class DeferredPlacer {
public:
  DeferredPlacer(ArrayRef<FillRegion> regions, sema::Evaluator &evaluator,
                 DiagnosticEngine &diags, Program &program)
      : regions(regions), evaluator(evaluator), diags(diags), program(program),
        durations(program), memory(program), numbering(program.pipes()),
        ranks(program.numRanks()) {
    pairs.resize(pairOf.size());
    inFlight.assign(numbering.size(), 0);
    caps.assign(numbering.size(), 0);
  }

  bool run() {
    initPools();
    if (!findCaps())
      return false;
    for (RankId rank : program.ranks())
      enter(ranks[rank.value], program.begin(rank));
    for (RankId rank : program.ranks())
      scheduleEvent(ranks[rank.value], 0);
    while (!events.empty()) {
      auto [time, rank] = events.top();
      events.pop();
      if (time == ranks[rank].nextEventTime)
        ranks[rank].nextEventTime = never;
      if (time >= ranks[rank].free)
        step(ranks[rank], time);
      else
        scheduleEvent(ranks[rank], ranks[rank].free);
      if (uncharged >= maxUnchargedWork &&
          !evaluator.chargeWork(std::exchange(uncharged, 0),
                                regions.front().range))
        return false;
    }
    Rows rows;
    rows.reserve(program.allRows().size() * 3 / 2);
    for (RankId rank : program.ranks()) {
      appendRemaining(ranks[rank.value]);
      rows.beginRank();
      for (const Action &action : ranks[rank.value].actions)
        rows.append(action);
    }
    program = program.withRows(std::move(rows));
    return true;
  }

private:
  static constexpr Time unknown = -1, never = std::numeric_limits<Time>::max();

  /// The rows of one kind of a chunk that are left, in the written order.
  struct Queue {
    std::vector<ActionId> rows;
    size_t next = 0;
    Action action; ///< Of the head, which is asked for again and again.
    bool isEmpty() const { return next == rows.size(); }
    ActionId head() const { return rows[next]; }
  };
  /// A stage and a microbatch.
  struct Pair {
    Time outAt = unknown, gradAt = unknown; ///< When they are there.
    Amount holds = 0;
  };
  /// Of the limit of a rank, and of the cap of its region.
  struct ResourcePools {
    ResourcePool memory, count;
  };
  struct Rank {
    RankId id;
    Time free = 0;              ///< When what it runs ends.
    Time nextEventTime = never; ///< When it next looks what it can do.
    ActionId next;              ///< The row that comes next, as written.
    const FillRegion *region = nullptr;     ///< That it is in.
    bool keepsOrder = false;                ///< All rows of it in their order.
    std::vector<Queue> forwards, backwards; ///< Of it, otherwise; by chunk.
    std::vector<Action> deferred; ///< Those before `firstPending` are done.
    size_t firstPending = 0;
    size_t numDeferred() const { return deferred.size() - firstPending; }
    decimal::Sum held = 0;
    int64_t inFlight = 0;
    std::unique_ptr<ResourcePools> pools; ///< None without forwards.
    std::vector<Action> actions;          ///< What it does.
  };

  // ---- Actions ----

  /// Microbatches that banks let end one after another; slices end together.
  size_t unitOf(const Action &action) const {
    const Pipe &pipe = program.pipe(action.pipe);
    return (action.microbatch - pipe.firstMicrobatch) / pipe.slices *
               program.pipes().size() +
           action.pipe.value;
  }
  static bool isOfMicrobatch(const Action &action, const KindInfo &info) {
    return info.isCompute() && !info.isDeclared() && action.hasMicrobatch();
  }

  Time afterEdge(const Action &to, StageId from, Time at) const {
    bool isFar = program.rankOfStage(to.pipe, from) !=
                 program.rankOfStage(to.pipe, to.stage);
    return at == unknown || !isFar
               ? at
               : at + durations.ofEdge(to.pipe, from, to.stage, to.microbatch);
  }

  /// When the data of an action is there, or unknown.
  Time ready(const Action &action) const {
    const KindInfo &info = program.kindOf(action);
    if (!isOfMicrobatch(action, info))
      return 0;
    Time last = 0;
    auto await = [&](Time at) {
      last = at == unknown || last == unknown ? unknown : std::max(last, at);
    };
    const Pipe &pipe = program.pipe(action.pipe);
    for (uint8_t bit : slotsIn(info.defines & ~slot::WeightGrad)) {
      auto at = bit == slot::Output ? &Pair::outAt : &Pair::gradAt;
      for (StageId source : sourcesOf(pipe, action.stage, bit))
        await(afterEdge(action, source,
                        pairs[pairOf(action.pipe, source, action.microbatch)].*
                            at));
      if (auto slice = pipe.sliceBefore(action.microbatch, bit))
        await(pairs[pairOf(action.pipe, action.stage, *slice)].*at);
    }
    if (info.defines & slot::InputGrad && !(info.defines & slot::Output))
      await(pairs[pairOf(action)].outAt);
    return last;
  }
  Time ready(ActionId begin, ActionId end) const {
    Time last = 0;
    for (; begin != end; ++begin.value) {
      Time at = ready(program[begin]);
      if (at == unknown)
        return unknown;
      last = std::max(last, at);
    }
    return last;
  }

  /// Notes what an action, which ends at `end`, takes and makes.
  void perform(Rank &rank, const Action &action, Time end) {
    rank.actions.push_back(action);
    const KindInfo &info = program.kindOf(action);
    if (!isOfMicrobatch(action, info))
      return;
    Pair &pair = pairs[pairOf(action)];
    size_t unit = unitOf(action), stage = numbering(action);
    Amount takes = memory.of(action);
    if (memory.freesRemainder(action))
      takes = -pair.holds;
    if (info.defines & slot::Output) {
      ++rank.inFlight, ++inFlight[stage];
      rank.pools->memory.take(unit, takes);
      rank.pools->count.take(unit, 1);
    }
    if (info.defines & slot::InputGrad && pair.outAt != unknown) {
      --rank.inFlight, --inFlight[stage];
      Action forward = action;
      forward.kind = forwardKind;
      rank.pools->memory.release(unit, memory.of(forward));
      rank.pools->count.release(unit, 1);
    }
    pair.holds += takes;
    rank.held += takes;
    for (uint8_t bit : slotsIn(info.defines & ~slot::WeightGrad)) {
      (bit == slot::Output ? pair.outAt : pair.gradAt) = end;
      for (StageId reader :
           readersOf(program.pipe(action.pipe), action.stage, bit)) {
        Action to = action;
        to.stage = reader;
        RankId other = program.rankOfStage(action.pipe, reader);
        scheduleEvent(ranks[other.value],
                      std::max(afterEdge(to, action.stage, end),
                               ranks[other.value].free));
      }
    }
  }

  /// A rank that looks earlier sees what will be there later.
  void scheduleEvent(Rank &rank, Time at) {
    if (at >= rank.nextEventTime)
      return;
    rank.nextEventTime = at;
    events.push({at, rank.id.value});
  }

  void runRows(Rank &rank, ActionId begin, ActionId end, Time at) {
    rank.free = at + durations.of(program, begin, end);
    for (ActionId row = begin; row != end; ++row.value) {
      Action action = program[row];
      perform(rank, action, rank.free);
      defer(rank, action);
    }
    scheduleEvent(rank, rank.free);
  }
  /// What an action of a region leaves to be placed.
  void defer(Rank &rank, Action action) {
    if (!rank.region ||
        program.kindOf(action).defines != uint8_t(slot::InputGrad))
      return;
    action.kind = rank.region->kind;
    rank.deferred.push_back(action);
  }
  void runDeferred(Rank &rank, Time at) {
    Action action = rank.deferred[rank.firstPending++];
    if (rank.numDeferred() == 0)
      rank.deferred.clear(), rank.firstPending = 0;
    action.phase = rank.actions.back().phase;
    rank.free = at + durations.of(action);
    perform(rank, action, rank.free);
    scheduleEvent(rank, rank.free);
  }

  // ---- Limits ----

  void initPools() {
    for (RankId id : program.ranks()) {
      Rank &rank = ranks[id.value];
      rank.id = id;
      rank.held = memory.staticOf(id);
      std::vector<ActionId> forwards;
      std::vector<size_t> units;
      for (ActionId row : program.rows(id)) {
        Action action = program[row];
        const KindInfo &info = program.kindOf(row);
        if (!isOfMicrobatch(action, info) || !(info.defines & slot::Output))
          continue;
        forwardKind = action.kind;
        forwards.push_back(row);
        units.push_back(unitOf(action));
      }
      llvm::sort(units);
      units.erase(llvm::unique(units), units.end());
      if (forwards.empty())
        continue;
      rank.pools = std::make_unique<ResourcePools>();
      if (auto limit = memory.limitOf(id))
        rank.pools->memory.setLimit(*limit - rank.held);
      rank.pools->memory.setUnits(units);
      rank.pools->count.setUnits(units);
      for (ActionId row : forwards) {
        Action action = program[row];
        rank.pools->memory.add(unitOf(action), memory.of(action));
        rank.pools->count.add(unitOf(action), 1);
      }
    }
  }

  /// How many forwards of each stage may be ahead of its backwards: in the
  /// proportion in which the first microbatch is away from the stage, as many
  /// as the limits of all ranks let, but not more than it takes to fill the
  /// time.
  bool findCaps() {
    std::vector<double> roundTrip(numbering.size());
    for (PipeId p : program.pipeIds())
      computeRoundTrips(p, roundTrip);
    double rate = std::numeric_limits<double>::infinity();
    std::vector<double> work(ranks.size()), need(ranks.size()),
        slope(ranks.size());
    std::vector<int64_t> chunks(ranks.size());
    for (PipeId p : program.pipeIds())
      for (StageId stage : program.pipe(p).stages()) {
        const Pipe &pipe = program.pipe(p);
        Action first{forwardKind, p, stage, pipe.firstMicrobatch};
        uint32_t rank = program.rankOfStage(p, stage).value;
        double amount = double(memory.of(first));
        work[rank] += double(durations.of(first));
        need[rank] += amount * pipe.slices;
        chunks[rank] += pipe.slices;
        slope[rank] += amount * roundTrip[numbering(p, stage)];
      }
    for (double time : work)
      if (time > 0)
        rate = std::min(rate, 1 / time);
    for (const FillRegion &region : regions) {
      RankId id = program.allRows().rankOf(region.begin);
      if (region.cap && *region.cap < chunks[id.value])
        return diags.report<diag::FillTooLittle>(region.range, id.value, "cap",
                                                 chunks[id.value], *region.cap);
      auto limit = memory.limitOf(id);
      if (!limit)
        continue;
      double rest = double(*limit - memory.staticOf(id)) - need[id.value];
      if (rest < 0)
        return diags.report<diag::FillTooLittle>(
            region.range, id.value, "memory",
            amount::format(decimal::Sum(need[id.value]) + memory.staticOf(id)),
            amount::format(*limit));
      if (slope[id.value] > 0)
        rate = std::min(rate, rest / slope[id.value]);
    }
    for (PipeId p : program.pipeIds())
      for (StageId stage : program.pipe(p).stages()) {
        size_t i = numbering(p, stage);
        // A quotient of whole numbers may come out a little below.
        double ahead =
            std::isinf(rate) ? 0 : std::floor(rate * roundTrip[i] + 1e-9);
        caps[i] = program.pipe(p).slices +
                  int64_t(std::min(ahead, double(INT32_MAX)));
      }
    return true;
  }

  /// How long the first microbatch of a pipe is away from each stage, between
  /// its forward and its backward there.
  void computeRoundTrips(PipeId p, std::vector<double> &roundTrip) const {
    const Pipe &pipe = program.pipe(p);
    std::vector<Time> forward(pipe.numStages()), backward(pipe.numStages());
    // Behind `start` and what the action reads, which has these ends.
    auto startOf = [&](const Action &action, uint8_t bit, Time start,
                       ArrayRef<Time> ends) {
      for (StageId source : sourcesOf(pipe, action.stage, bit))
        start = std::max(start, afterEdge(action, source, ends[source.value]));
      return start;
    };
    for (StageId stage : pipe.stages()) {
      Action action{forwardKind, p, stage, pipe.firstMicrobatch};
      forward[stage.value] =
          startOf(action, slot::Output, 0, forward) + durations.of(action);
    }
    // What regions have in the place of whole backwards.
    auto gradient = program.kinds().find(KindClass::Compute, slot::InputGrad);
    for (uint32_t s = pipe.numStages(); gradient && s-- != 0;) {
      Action action{*gradient, p, StageId(s), pipe.firstMicrobatch};
      Time start = startOf(action, slot::InputGrad, forward[s], backward);
      backward[s] = start + durations.of(action);
      roundTrip[numbering(p, StageId(s))] = double(start - forward[s]);
    }
  }

  // ---- Regions ----

  /// Goes on at a row: in a region, if one begins there.
  void enter(Rank &rank, ActionId row) {
    rank.next = row;
    rank.region = nullptr;
    auto *found = llvm::partition_point(
        regions, [&](const FillRegion &region) { return region.begin < row; });
    if (found == regions.end() || found->begin != row ||
        row == program.end(rank.id))
      return;
    rank.region = found;
    rank.keepsOrder = !found->cap && !memory.limitOf(rank.id);
    if (rank.keepsOrder)
      return;
    if (rank.pools)
      rank.pools->count.setLimit(found->cap.value_or(INT64_MAX) -
                                 rank.inFlight);
    DenseMap<size_t, size_t> chunks; // By stage, as they come.
    rank.forwards.clear(), rank.backwards.clear();
    for (ActionId at = found->begin; at != found->end; ++at.value) {
      auto [known, isNew] =
          chunks.try_emplace(numbering(program[at]), chunks.size());
      size_t chunk = known->second;
      if (isNew)
        rank.forwards.emplace_back(), rank.backwards.emplace_back();
      auto &queues = program.kindOf(at).defines == slot::Output
                         ? rank.forwards
                         : rank.backwards;
      if (queues[chunk].rows.empty())
        queues[chunk].action = program[at];
      queues[chunk].rows.push_back(at);
    }
  }

  void step(Rank &rank, Time now) {
    if (!rank.region && rank.next == program.end(rank.id))
      return;
    if (rank.region && rank.region->lag &&
        int64_t(rank.numDeferred()) > *rank.region->lag)
      return runDeferred(rank, now);
    if (rank.region && !rank.keepsOrder)
      return choose(rank, now);
    if (rank.region && rank.next == rank.region->end)
      return leave(rank, now);
    ActionId end = program.groupEnd(rank.next, rank.id);
    Time at = ready(rank.next, end);
    if (at == unknown || at > now)
      return idle(rank, now, at);
    ActionId begin = std::exchange(rank.next, end);
    runRows(rank, begin, end, now);
    if (!rank.region)
      enter(rank, rank.next);
  }

  /// All rows of the region are there: what is pending follows.
  void leave(Rank &rank, Time now) {
    if (rank.numDeferred() != 0)
      return runDeferred(rank, now);
    enter(rank, rank.region->end);
    step(rank, now);
  }

  /// Nothing can run before `until`.
  void idle(Rank &rank, Time now, Time until) {
    bool fits =
        rank.numDeferred() != 0 &&
        (until == unknown ||
         (until - now) * 2 >= durations.of(rank.deferred[rank.firstPending]));
    if (fits)
      runDeferred(rank, now);
    else if (until != unknown)
      scheduleEvent(rank, until);
  }

  /// Takes the next forward that the limits let, else the next backward.
  void choose(Rank &rank, Time now) {
    Time until = unknown;
    bool isLeft = false;
    auto first = [&](std::vector<Queue> &queues, bool isLimited) -> Queue * {
      Queue *best = nullptr;
      for (Queue &queue : queues) {
        ++uncharged;
        if (queue.isEmpty())
          continue;
        uncharged += costOfReady;
        isLeft = true;
        const Action &action = queue.action;
        Time at = ready(action);
        if (at == unknown || (isLimited && !isAllowed(rank, action)))
          continue;
        if (at > now)
          until = until == unknown ? at : std::min(until, at);
        else if (!best || queue.head() < best->head())
          best = &queue;
      }
      return best;
    };
    if (Queue *queue = first(rank.forwards, true)) {
      if (fits(rank, queue->action))
        return take(rank, *queue, now);
      if (rank.numDeferred() != 0) // They hold what it needs.
        return runDeferred(rank, now);
    }
    if (Queue *queue = first(rank.backwards, false))
      return take(rank, *queue, now);
    return isLeft ? idle(rank, now, until) : leave(rank, now);
  }
  void take(Rank &rank, Queue &queue, Time now) {
    ActionId row = queue.head();
    if (++queue.next; !queue.isEmpty())
      queue.action = program[queue.head()];
    runRows(rank, row, ActionId(row.value + 1), now);
  }
  bool isAllowed(const Rank &rank, const Action &forward) {
    size_t stage = numbering(forward), unit = unitOf(forward);
    return inFlight[stage] < caps[stage] &&
           rank.pools->memory.isSafe(unit, memory.of(forward), uncharged) &&
           rank.pools->count.isSafe(unit, 1, uncharged);
  }
  bool fits(const Rank &rank, const Action &forward) const {
    auto limit = memory.limitOf(rank.id);
    return !limit || rank.held + memory.of(forward) <= decimal::Sum(*limit);
  }

  /// Lets a rank that waits for ever do the rest as it is written: the checks
  /// say why.
  void appendRemaining(Rank &rank) {
    while (rank.region || rank.next != program.end(rank.id)) {
      if (!rank.region) {
        rank.actions.push_back(program[rank.next]);
        enter(rank, ActionId(rank.next.value + 1));
        continue;
      }
      std::vector<ActionId> rows;
      for (; rank.keepsOrder && rank.next != rank.region->end;
           ++rank.next.value)
        rows.push_back(rank.next);
      if (!rank.keepsOrder)
        for (auto *queues : {&rank.forwards, &rank.backwards})
          for (Queue &queue : *queues)
            rows.insert(rows.end(), queue.rows.begin() + queue.next,
                        queue.rows.end());
      llvm::sort(rows);
      for (ActionId row : rows) {
        rank.actions.push_back(program[row]);
        defer(rank, program[row]);
      }
      rank.actions.insert(rank.actions.end(),
                          rank.deferred.begin() + rank.firstPending,
                          rank.deferred.end());
      rank.deferred.clear(), rank.firstPending = 0;
      enter(rank, rank.region->end);
    }
  }

  /// What is looked at is counted, and reported to the evaluator now and then.
  static constexpr uint64_t maxUnchargedWork = 1 << 20, costOfReady = 8;
  uint64_t uncharged = 0;

  ArrayRef<FillRegion> regions;
  sema::Evaluator &evaluator;
  DiagnosticEngine &diags;
  Program &program;
  Durations durations;
  MemoryModel memory;
  StageNumbering numbering;
  KindId forwardKind;
  const PairNumbering pairOf{program.pipes()};
  std::vector<Pair> pairs;             ///< Of stage and microbatch.
  std::vector<int64_t> inFlight, caps; ///< By stage.
  std::vector<Rank> ranks;
  using Event = std::pair<Time, uint32_t>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
};

} // namespace

bool ppcc::fillDeferred(ArrayRef<FillRegion> regions,
                        sema::Evaluator &evaluator, DiagnosticEngine &diags,
                        Program &program) {
  return DeferredPlacer(regions, evaluator, diags, program).run();
}
