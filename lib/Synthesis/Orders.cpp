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
    : problem(problem), free(problem.numRanks()),
      topological(problem.numActions), isChanging(problem.numActions),
      positions(problem.numActions), next(problem.numOps()),
      at(problem.numRanks()), waitsFor(problem.numRanks()),
      microbatchOf(problem.numRanks()) {
  longest.fill(std::vector<Time>(problem.numActions));
}

std::optional<Time> Runner::run(const Order &given) {
  sequences = given;
  std::vector<Time> &ends = longest[Head];
  constexpr Time never = -1;
  constexpr uint64_t nothing = ~uint64_t(0);
  uint32_t ranks = problem.numRanks();
  std::fill(ends.begin(), ends.end(), never);
  std::fill(free.begin(), free.end(), 0);
  std::fill(next.begin(), next.end(), 0);
  std::fill(at.begin(), at.end(), 0);
  std::fill(waitsFor.begin(), waitsFor.end(), nothing);
  for (uint32_t rank = 0; rank != ranks; ++rank)
    microbatchOf[rank].resize(sequences[rank].size());
  uint32_t left = problem.numActions;
  for (uint32_t begin = 0; begin != ranks; ++begin) {
    work.push_back(begin);
    while (!work.empty()) {
      uint32_t rank = work.back();
      work.pop_back();
      const OpSequence &sequence = sequences[rank];
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
  return valueOf();
}

Time Runner::valueOf() {
  uint32_t ranks = problem.numRanks();
  Time value = -1;
  excessSpan = 0;
  for (uint32_t rank = 0; rank != ranks; ++rank) {
    if (sequences[rank].empty())
      continue;
    Time begin = problem.objective == Objective::Span
                     ? startOf(sequences[rank].front(), 0)
                     : 0;
    excessSpan += std::max<Time>(free[rank] - begin - problem.bound.time, 0);
    if (free[rank] - begin > value) {
      value = free[rank] - begin;
      last = rank;
    }
  }
  return value;
}

Time Runner::longestPath(Side side, Op op, uint32_t m) const {
  uint32_t rank = problem.rank[op];
  size_t place = positionOf(op, m) + (side == Head ? size_t(-1) : 1);
  Time path = 0;
  if (place < sequences[rank].size())
    path = longest[side][problem.first[sequences[rank][place]] +
                         microbatchOf[rank][place]];
  for (Problem::Edge edge :
       side == Head ? problem.sources(op) : problem.readers(op))
    path = std::max(path,
                    longest[side][problem.first[edge.op] + m] + edge.latency);
  return path + problem.timeOf(op, m);
}

void Runner::computeTails() {
  for (auto [op, m] : topological)
    longest[Tail][problem.first[op] + m] = longestPath(Tail, op, m);
}

void Runner::shift(uint32_t rank, size_t from, size_t to) {
  auto rotate = [&](auto &row) {
    auto at = row.begin();
    if (from < to)
      std::rotate(at + from, at + from + 1, at + to + 1);
    else
      std::rotate(at + to, at + from, at + from + 1);
  };
  rotate(sequences[rank]);
  rotate(microbatchOf[rank]);
  for (size_t place = std::min(from, to); place <= std::max(from, to); ++place)
    positions[problem.first[sequences[rank][place]] +
              microbatchOf[rank][place]] = place;
}

void Runner::push(Op op, uint32_t m) {
  uint32_t slot = problem.first[op] + m;
  if (!std::exchange(isChanging[slot], true))
    changing.push_back({op, m});
}

/// Finds the paths of one side anew, from what is at these places, and of what
/// is next to them there; false once one is longer than `limit`.
bool Runner::relax(Side side, uint32_t changed, size_t first, size_t last,
                   Time limit) {
  size_t size = sequences[changed].size();
  first -= side == Tail && first != 0;
  last += side == Head && last != size;
  for (size_t i = first; i != last; ++i) {
    size_t place = side == Head ? i : first + last - 1 - i;
    push(sequences[changed][place], microbatchOf[changed][place]);
  }
  before.clear();
  bool isWithin = true;
  for (size_t i = 0; i != changing.size(); ++i) {
    auto [op, m] = changing[i];
    uint32_t slot = problem.first[op] + m, rank = problem.rank[op];
    isChanging[slot] = false;
    Time path = longestPath(side, op, m);
    if (path == longest[side][slot] || !isWithin)
      continue;
    before.push_back({slot, std::exchange(longest[side][slot], path)});
    // A cycle may go on for long.
    isWithin =
        path <= limit && (side == Tail || i < 4 * size_t(problem.numActions));
    size_t place = positions[slot] + (side == Head ? 1 : size_t(-1));
    if (place < sequences[rank].size())
      push(sequences[rank][place], microbatchOf[rank][place]);
    for (Problem::Edge edge :
         side == Head ? problem.readers(op) : problem.sources(op))
      push(edge.op, m);
  }
  steps += changing.size();
  changing.clear();
  return isWithin;
}

std::optional<Time> Runner::update(uint32_t changed, size_t first, size_t last,
                                   Time limit) {
  if (!relax(Head, changed, first, last, limit))
    return std::nullopt;
  for (uint32_t rank = 0; rank != problem.numRanks(); ++rank)
    if (!sequences[rank].empty())
      free[rank] = endOf(sequences[rank].back(), microbatchOf[rank].back());
  return valueOf();
}

void Runner::undo() {
  for (auto [slot, end] : llvm::reverse(before))
    longest[Head][slot] = end;
}

void Runner::updateTails(uint32_t changed, size_t first, size_t last) {
  relax(Tail, changed, first, last, std::numeric_limits<Time>::max());
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
