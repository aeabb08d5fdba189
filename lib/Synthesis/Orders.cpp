// Runs orders by data alone.
#include "ppcc/Synthesis/Orders.h"

#include "llvm/ADT/Sequence.h"

using namespace ppcc;
using namespace ppcc::synthesis;

using enum Workload::Part;

Problem::Problem(const Workload &load, Objective objective,
                 const Savings *savings)
    : load(load), objective(objective), savings(savings),
      bound(savings ? boundOf(*savings, objective)
                    : resourceBound(load, objective)),
      away(AloneTimes(load).away) {
  std::vector<std::vector<Edge>> readers(load.stages.size() *
                                         Workload::numParts);
  for (uint32_t s = 0; s != load.stages.size(); ++s) {
    const Workload::Stage &stage = load.stages[s];
    for (unsigned part = 0; part != Workload::numParts; ++part) {
      Op op = opOf(s, part);
      bool is = load.hasPart(Workload::Part(part));
      count.push_back(is ? stage.microbatches : 0);
      time.push_back(stage.time[part]);
      takes.push_back(stage.takes[part]);
      gives.push_back(stage.gives[part]);
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
    room.push_back(load.room[rank].value_or(unlimited));
    mostChunks = std::max<uint32_t>(mostChunks, stages.size());
    Time own = 0;
    Amount staged = 0, held = 0, most = 0;
    for (uint32_t s : stages) {
      StageSaving way = savings ? savings->ofStage[s] : StageSaving();
      Amount needed = 0;
      auto add = [&](const Workload::Stage &stage) {
        // What I takes beyond, W can give back at once.
        needed = std::max(needed, stage.heldBehindF());
        most = std::max({most, stage.takes[F] - stage.heldBehindF(),
                         stage.takes[I], load.hasPart(W) ? stage.takes[W] : 0});
      };
      if (way.n != StageSaving::of)
        add(load.stages[s]);
      if (way.n != 0)
        add(savings->load(way.how).stages[s]);
      held += needed;
      for (Time part : load.stages[s].time)
        own += part;
      if (savings)
        staged = std::max(staged, savings->staged(s));
    }
    whole.push_back(held);
    slack.push_back(most);
    period = std::max(period, own);
    if (load.room[rank])
      room.back() -= staged;
  }
  if (savings)
    for (auto [s, one] : llvm::enumerate(savings->ofStage)) {
      const Workload::Stage &stage = savings->load(one.how).stages[s];
      for (unsigned part = 0; part != Workload::numParts; ++part)
        saved.push_back(
            {stage.time[part], stage.takes[part], stage.gives[part]});
    }
}

bool Problem::hasRoom() const {
  return llvm::all_of(llvm::seq(numRanks()),
                      [&](uint32_t rank) { return hasRoom(rank); });
}

Runner::Runner(const Problem &problem)
    : problem(problem), ends(problem.numActions), free(problem.numRanks()),
      places(problem.numActions), next(problem.numOps()),
      at(problem.numRanks()), waitsFor(problem.numRanks()),
      mbs(problem.numRanks()) {}

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
    mbs[rank].resize(order[rank].size());
  uint32_t left = problem.numActions;
  for (uint32_t begin = 0; begin != ranks; ++begin) {
    work.push_back(begin);
    while (!work.empty()) {
      uint32_t rank = work.back();
      work.pop_back();
      const Word &word = order[rank];
      Time now = free[rank];
      uint32_t place = at[rank];
      for (; place != word.size(); ++place) {
        Op op = word[place];
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
        places[slot] = place;
        mbs[rank][place] = m;
        ++next[op];
        --left;
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
  Time value = -1;
  above = 0;
  for (uint32_t rank = 0; rank != ranks; ++rank) {
    if (order[rank].empty())
      continue;
    Time begin = problem.objective == Objective::Span
                     ? startOf(order[rank].front(), 0)
                     : 0;
    above += std::max<Time>(free[rank] - begin - problem.bound.time, 0);
    if (free[rank] - begin > value) {
      value = free[rank] - begin;
      last = rank;
    }
  }
  return value;
}

bool synthesis::isValid(const Problem &problem, uint32_t rank,
                        const Word &word) {
  const auto &stages = problem.load.ofRank[rank];
  std::vector<uint32_t> done(problem.numOps());
  Amount held = 0;
  for (Op op : word) {
    if (partOf(op) != F && done[op] == done[op - 1])
      return false;
    uint32_t m = done[op]++;
    held += problem.takenBy(op, m);
    if (held > problem.room[rank])
      return false;
    held -= problem.givenBy(op, m);
  }
  for (uint32_t s : stages)
    for (unsigned part = 0; part != Workload::numParts; ++part)
      if (done[opOf(s, part)] != problem.count[opOf(s, part)])
        return false;
  return true;
}
