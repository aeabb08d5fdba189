// Runs orders by data alone.
#include "ppcc/Synthesis/Orders.h"

#include "llvm/ADT/Sequence.h"

using namespace ppcc;
using namespace ppcc::synthesis;

using enum Workload::Part;

Problem::Problem(const Workload &load, Objective objective,
                 const ActivationPlan *plan)
    : load(load), objective(objective), plan(plan),
      bound(plan ? boundOf(*plan, objective) : resourceBound(load, objective)),
      roundTrip(UncontendedTimes(load).roundTrip) {
  std::vector<std::vector<Edge>> readers(load.stages.size() *
                                         Workload::numParts);
  for (uint32_t s = 0; s != load.stages.size(); ++s) {
    const Workload::Stage &stage = load.stages[s];
    for (unsigned part = 0; part != Workload::numParts; ++part) {
      Op op = opOf(s, part);
      bool is = load.hasPart(Workload::Part(part));
      count.push_back(is ? stage.microbatches : 0);
      time.push_back(stage.time[part]);
      allocates.push_back(stage.allocates[part]);
      frees.push_back(stage.frees[part]);
      rank.push_back(stage.rank.value);
      first.push_back(numActions);
      numActions += count.back();
      auto add = [&](Op source, Time latency) {
        sourceEdges.edges.push_back({source, latency});
        readers[source].push_back({op, latency});
      };
      if (is && part != F)
        add(op - 1, 0);
      if (is && part != W)
        for (Workload::Edge edge : part == F ? stage.below : stage.above)
          add(opOf(edge.stage, part), edge.latency);
      sourceEdges.starts.push_back(sourceEdges.edges.size());
    }
  }
  for (const std::vector<Edge> &edges : readers) {
    readerEdges.edges.insert(readerEdges.edges.end(), edges.begin(),
                             edges.end());
    readerEdges.starts.push_back(readerEdges.edges.size());
  }
  for (auto [rank, stages] : llvm::enumerate(load.ofRank)) {
    memoryBudget.push_back(load.memoryBudget[rank].value_or(unlimited));
    maxChunks = std::max<uint32_t>(maxChunks, stages.size());
    Time own = 0;
    Amount staged = 0, live = 0, peak = 0;
    for (uint32_t s : stages) {
      StageActivationPolicy way =
          plan ? plan->ofStage[s] : StageActivationPolicy();
      Amount needed = 0;
      auto add = [&](const Workload::Stage &stage) {
        // What I takes beyond, W can give back at once.
        needed = std::max(needed, stage.heldAfterF());
        peak = std::max({peak, stage.allocates[F] - stage.heldAfterF(),
                         stage.allocates[I],
                         load.hasPart(W) ? stage.allocates[W] : 0});
      };
      if (way.n != StageActivationPolicy::of)
        add(load.stages[s]);
      if (way.n != 0)
        add(plan->load(way.policy).stages[s]);
      live += needed;
      for (Time part : load.stages[s].time)
        own += part;
      if (plan)
        staged = std::max(staged, plan->staged(s));
    }
    claim.push_back(live);
    transient.push_back(peak);
    period = std::max(period, own);
    if (load.memoryBudget[rank])
      memoryBudget.back() -= staged;
  }
  if (plan)
    for (auto [s, one] : llvm::enumerate(plan->ofStage)) {
      const Workload::Stage &stage = plan->load(one.policy).stages[s];
      for (unsigned part = 0; part != Workload::numParts; ++part)
        saved.push_back(
            {stage.time[part], stage.allocates[part], stage.frees[part]});
    }
  work.resize(numRanks());
  for (Op op = 0; op != numOps(); ++op)
    for (uint32_t m = 0; m != count[op]; ++m)
      work[rank[op]] += timeOf(op, m);
}

bool Problem::fitsMemory() const {
  return llvm::all_of(llvm::seq(numRanks()),
                      [&](uint32_t rank) { return fitsMemory(rank); });
}

Runner::Runner(const Problem &problem)
    : problem(problem), ends(problem.numActions), tails(problem.numActions),
      free(problem.numRanks()), topological(problem.numActions),
      isChanging(problem.numActions), positions(problem.numActions),
      next(problem.numOps()), at(problem.numRanks()),
      waitsFor(problem.numRanks()), microbatchOf(problem.numRanks()) {}

std::optional<Time> Runner::run(const Order &order) {
  constexpr Time never = -1;
  constexpr uint64_t nothing = ~uint64_t(0);
  uint32_t ranks = problem.numRanks();
  std::fill(ends.begin(), ends.end(), never);
  std::fill(free.begin(), free.end(), 0);
  std::fill(next.begin(), next.end(), 0);
  std::fill(at.begin(), at.end(), 0);
  std::fill(waitsFor.begin(), waitsFor.end(), nothing);
  for (uint32_t rank = 0; rank != ranks; ++rank)
    microbatchOf[rank].resize(order[rank].size());
  uint32_t left = problem.numActions;
  for (uint32_t begin = 0; begin != ranks; ++begin) {
    work.push_back(begin);
    while (!work.empty()) {
      uint32_t rank = work.back();
      work.pop_back();
      const OpSequence &sequence = order[rank];
      Time now = free[rank];
      uint32_t place = at[rank];
      for (; place != sequence.size(); ++place) {
        Op op = sequence[place];
        uint32_t m = next[op];
        Time start = now;
        uint64_t missing = nothing;
        for (Problem::Edge edge : problem.sources(op)) {
          uint64_t slot = problem.first[edge.op] + m;
          if (ends[slot] == never) {
            missing = slot;
            break;
          }
          start = std::max(start, ends[slot] + edge.latency);
        }
        waitsFor[rank] = missing;
        if (missing != nothing)
          break;
        now = start + problem.timeOf(op, m);
        uint64_t slot = problem.first[op] + m;
        ends[slot] = now;
        positions[slot] = place;
        microbatchOf[rank][place] = m;
        ++next[op];
        topological[--left] = {op, m};
        for (Problem::Edge edge : problem.readers(op)) {
          uint32_t other = problem.rank[edge.op];
          if (waitsFor[other] == slot) {
            waitsFor[other] = nothing;
            if (other != rank)
              work.push_back(other);
          }
        }
      }
      free[rank] = now;
      at[rank] = place;
    }
  }
  if (left != 0)
    return std::nullopt;
  return valueOf(order);
}

Time Runner::valueOf(const Order &order) {
  uint32_t ranks = problem.numRanks();
  Time value = -1;
  excessSpan = 0;
  for (uint32_t rank = 0; rank != ranks; ++rank) {
    if (order[rank].empty())
      continue;
    Time begin = problem.objective == Objective::Span
                     ? startOf(order[rank].front(), 0)
                     : 0;
    excessSpan += std::max<Time>(free[rank] - begin - problem.bound.time, 0);
    if (free[rank] - begin > value) {
      value = free[rank] - begin;
      last = rank;
    }
  }
  return value;
}

Time Runner::tailAfter(const Order &order, Op op, uint32_t m) const {
  uint32_t rank = problem.rank[op], next = positionOf(op, m) + 1;
  Time tail = next == order[rank].size()
                  ? 0
                  : tailOf(order[rank][next], microbatchOf[rank][next]);
  for (Problem::Edge edge : problem.readers(op))
    tail = std::max(tail, tailOf(edge.op, m) + edge.latency);
  return tail;
}

void Runner::computeTails(const Order &order) {
  for (auto [op, m] : topological)
    tails[problem.first[op] + m] =
        tailAfter(order, op, m) + problem.timeOf(op, m);
}

void Runner::push(Op op, uint32_t m) {
  uint32_t slot = problem.first[op] + m;
  if (!std::exchange(isChanging[slot], true))
    changing.push_back({op, m});
}

void Runner::place(const Order &order, uint32_t rank, size_t first,
                   size_t last) {
  for (size_t place = first; place != last; ++place)
    positions[problem.first[order[rank][place]] + microbatchOf[rank][place]] =
        place;
}

std::optional<Time> Runner::update(const Order &order, uint32_t changed,
                                   size_t first, size_t last, Time limit) {
  place(order, changed, first, last);
  before.clear();
  bool isBelow = true;
  for (size_t place = first; place != std::min(last + 1, order[changed].size());
       ++place)
    push(order[changed][place], microbatchOf[changed][place]);
  for (size_t i = 0; i != changing.size(); ++i) {
    auto [op, m] = changing[i];
    uint32_t slot = problem.first[op] + m, rank = problem.rank[op],
             place = positions[slot];
    isChanging[slot] = false;
    Time start = place == 0 ? 0
                            : endOf(order[rank][place - 1],
                                    microbatchOf[rank][place - 1]);
    for (Problem::Edge edge : problem.sources(op))
      start = std::max(start, endOf(edge.op, m) + edge.latency);
    Time end = start + problem.timeOf(op, m);
    if (end == ends[slot] || !isBelow)
      continue;
    before.push_back({slot, ends[slot]});
    ends[slot] = end;
    // A cycle may go on for long.
    isBelow = end <= limit && i < 4 * size_t(problem.numActions);
    if (place + 1 != order[rank].size())
      push(order[rank][place + 1], microbatchOf[rank][place + 1]);
    for (Problem::Edge edge : problem.readers(op))
      push(edge.op, m);
  }
  steps += changing.size();
  changing.clear();
  if (!isBelow)
    return std::nullopt;
  for (uint32_t rank = 0; rank != problem.numRanks(); ++rank)
    if (!order[rank].empty())
      free[rank] = endOf(order[rank].back(), microbatchOf[rank].back());
  return valueOf(order);
}

void Runner::undo() {
  for (auto [slot, end] : llvm::reverse(before))
    ends[slot] = end;
}

void Runner::updateTails(const Order &order, uint32_t changed, size_t first,
                         size_t last) {
  for (size_t place = last; place-- != first - (first != 0);)
    push(order[changed][place], microbatchOf[changed][place]);
  for (size_t i = 0; i != changing.size(); ++i) {
    auto [op, m] = changing[i];
    uint32_t slot = problem.first[op] + m, rank = problem.rank[op],
             place = positions[slot];
    isChanging[slot] = false;
    Time tail = tailAfter(order, op, m) + problem.timeOf(op, m);
    if (std::exchange(tails[slot], tail) == tail)
      continue;
    if (place != 0)
      push(order[rank][place - 1], microbatchOf[rank][place - 1]);
    for (Problem::Edge edge : problem.sources(op))
      push(edge.op, m);
  }
  steps += changing.size();
  changing.clear();
}

bool synthesis::isValid(const Problem &problem, uint32_t rank,
                        const OpSequence &sequence) {
  const auto &stages = problem.load.ofRank[rank];
  std::vector<uint32_t> done(problem.numOps());
  Amount live = 0;
  for (Op op : sequence) {
    if (partOf(op) != F && done[op] == done[op - 1])
      return false;
    uint32_t m = done[op]++;
    live += problem.allocatedBy(op, m);
    if (live > problem.memoryBudget[rank])
      return false;
    live -= problem.freedBy(op, m);
  }
  for (uint32_t s : stages)
    for (unsigned part = 0; part != Workload::numParts; ++part)
      if (done[opOf(s, part)] != problem.count[opOf(s, part)])
        return false;
  return true;
}
