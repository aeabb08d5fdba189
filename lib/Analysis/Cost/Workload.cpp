// What a placement asks of its ranks.
#include "ppcc/Analysis/Cost/ResourceBound.h"

using namespace ppcc;

namespace {

struct Builder {
  using Backward = Workload::Backward;
  using ActivationPolicy = Workload::ActivationPolicy;
  static constexpr auto F = Workload::F, I = Workload::I, W = Workload::W;

  const Program &program;
  const Durations &durations;
  Backward backward;
  uint32_t maxGroupSize;
  std::optional<ActivationPolicy> saving;

  Workload run() {
    load.backward = backward;
    if (maxGroupSize != 1 && !program.nodes().empty() && program.hasNodeCosts())
      nodes.emplace(program);
    load.ofRank.resize(program.numRanks());
    for (PipeId pipe : program.pipeIds())
      for (StageId stage : program.pipe(pipe).stages()) {
        Workload::Stage &row = load.stages.emplace_back();
        row.pipe = pipe;
        row.stage = stage;
        row.rank = program.rankOfStage(pipe, stage);
        row.microbatches = program.pipe(pipe).numMicrobatches;
        load.ofRank[row.rank.value].push_back(load.stages.size() - 1);
        addParts(row);
        addEdges(row.below, row, slot::Output);
        addEdges(row.above, row, slot::InputGrad);
      }
    for (ArrayRef<uint32_t> stages : load.ofRank)
      addWorkOfRank(stages);
    addMemoryBudgets();
    return std::move(load);
  }

  Action action(const Workload::Stage &row, uint32_t kind,
                uint32_t microbatch) const {
    Action action;
    action.kind = KindId(kind);
    action.pipe = row.pipe;
    action.stage = row.stage;
    action.microbatch = microbatch;
    return action;
  }

  /// What is left of a time, at least, in a group that `among` members share.
  Time inGroup(Time time, uint32_t among) const {
    const CostSetting *rule = program.costs().group();
    if (maxGroupSize == 1)
      return time;
    if (!rule)
      return time;
    Time value = rule->values.front();
    if (rule->what == Cost::Overlap)
      return std::min(time, value / among);
    if (rule->what == Cost::GroupMax)
      value /= among;
    return scaling::apply(time, std::min(value, cost::unit), time);
  }
  /// What the nodes of an action take at least, in a group too: those of each
  /// lane and, last, those of the longest path. Its own time may be longer,
  /// since a group may run them in another order. Empty without nodes.
  std::vector<Time> leastTimes(const Action &action) {
    uint32_t id = nodes ? nodes->graphOf(action) : GraphUse::none;
    if (id == GraphUse::none)
      return {};
    const NodeGraph &graph = nodes->graph(id);
    std::vector<Time> least(program.nodes().lanes.size() + 1),
        ends(graph.nodes.size());
    for (const NodeOrder::ScheduledNode &place : nodes->of(id).scheduled) {
      const GraphNode &node = graph.nodes[place.node];
      Time time =
          scales.time(action, place.end - place.start, NodeOrders::maxTime);
      for (uint32_t needed : node.needs)
        ends[place.node] = std::max(ends[place.node], ends[needed]);
      ends[place.node] += time;
      least[node.lane] += time;
      least.back() = std::max(least.back(), ends[place.node]);
    }
    return least;
  }

  /// How long it takes until its results are there, at least.
  Time toEnd(const Action &action) {
    if (durations.hasHookOffsets())
      return 0;
    Time time = inGroup(durations.of(action), 1);
    auto least = leastTimes(action);
    return least.empty() ? time : std::min(time, std::ranges::max(least));
  }
  /// What it takes of its rank's time, at least. A group takes no less than its
  /// members' nodes on any one lane.
  Time workOf(const Action &action, uint32_t lane) {
    Time time = inGroup(durations.of(action), maxGroupSize);
    auto least = leastTimes(action);
    return least.empty() ? time : std::min(time, least[lane]);
  }

  /// Counts the work on the lane that has the most.
  void addWorkOfRank(ArrayRef<uint32_t> stages) {
    uint32_t lanes = nodes ? program.nodes().lanes.size() : 1, best = 0;
    decimal::Sum most = -1;
    auto add = [&](uint32_t lane) {
      decimal::Sum total = 0;
      for (uint32_t stage : stages)
        total += addWork(load.stages[stage], lane);
      return total;
    };
    for (uint32_t lane = 0; lane != lanes; ++lane)
      if (decimal::Sum total = add(lane); total > most)
        std::tie(most, best) = std::tuple(total, lane);
    add(best);
  }

  decimal::Sum addWork(Workload::Stage &row, uint32_t lane) {
    if (row.microbatches == 0)
      return 0;
    uint32_t first = program.pipe(row.pipe).firstMicrobatch,
             differing = differ ? row.microbatches : 1;
    row.sum.fill(0);
    row.work.fill(std::numeric_limits<Time>::max());
    row.maxWork.fill(0);
    for (uint32_t m = first; m != first + differing; ++m)
      for (auto [part, work] : llvm::enumerate(partsOf(
               row, m, [&](const Action &it) { return workOf(it, lane); }))) {
        row.work[part] = std::min(row.work[part], work);
        row.maxWork[part] = std::max(row.maxWork[part], work);
        row.sum[part] += work * (row.microbatches / differing);
      }
    return decimal::Sum(row.sum[F]) + row.sum[I] + row.sum[W];
  }

  void addParts(Workload::Stage &row) {
    const Pipe &pipe = program.pipe(row.pipe);
    uint32_t first = pipe.firstMicrobatch;
    if (pipe.numMicrobatches == 0)
      return;
    auto timeOf = [&](KindId kind) {
      return durations.of(action(row, kind.value, first));
    };
    if (isRecomputed())
      row.recomputeTime = timeOf(*recomputeKind(program));
    if (saving == ActivationPolicy::Offload) {
      row.copyOut = timeOf(offloadKinds(program)->out);
      row.copyIn = timeOf(offloadKinds(program)->in);
    }
    uint32_t differing = differ ? pipe.numMicrobatches : 1;
    row.time.fill(std::numeric_limits<Time>::max());
    for (uint32_t m = first; m != first + differing; ++m)
      for (auto [part, time] : llvm::enumerate(
               partsOf(row, m, [&](const Action &it) { return toEnd(it); })))
        row.time[part] = std::min(row.time[part], time);
    addMemory(row, first);
  }

  bool isRecomputed() const { return saving == ActivationPolicy::Recompute; }

  std::array<Time, Workload::numParts>
  partsOf(const Workload::Stage &row, uint32_t m,
          function_ref<Time(const Action &)> timeOf) const {
    auto time = [&](uint32_t kind) { return timeOf(action(row, kind, m)); };
    Time forward = time(kind::Forward), whole = time(kind::Backward),
         input = time(kind::BackwardInput), weight = time(kind::BackwardWeight);
    if (isRecomputed()) {
      Time recomputeTime = time(recomputeKind(program)->value);
      whole += recomputeTime;
      input += recomputeTime;
    }
    switch (load.backward) {
    case Backward::None:
      return {forward, 0, 0};
    case Backward::Fused:
      return {forward, whole, 0};
    case Backward::Split:
      return {forward, input, weight};
    case Backward::Mixed:
      input = std::min(input, whole);
      return {forward, input, std::min(whole - input, weight)};
    }
    return {};
  }

  void addMemory(Workload::Stage &row, uint32_t microbatch) {
    Amount held = 0;
    auto add = [&](Workload::Part part, uint32_t kind) {
      Action it = action(row, kind, microbatch);
      Amount change = memory.of(it);
      row.allocates[part] = std::max<Amount>(change, 0);
      held += row.allocates[part];
      row.frees[part] =
          memory.freesRemainder(it) ? held : std::max<Amount>(-change, 0);
      held -= row.frees[part];
    };
    add(Workload::F, kind::Forward);
    Amount recomputed = 0;
    if (saving && saving != ActivationPolicy::Keep) {
      KindId kind =
          isRecomputed() ? *recomputeKind(program) : offloadKinds(program)->in;
      recomputed = std::clamp<Amount>(
          memory.of(action(row, kind.value, microbatch)), 0, held);
      row.frees[Workload::F] += recomputed;
    }
    if (load.backward == Backward::Fused) {
      add(Workload::I, kind::Backward);
    } else if (load.backward != Backward::None) {
      add(Workload::I, kind::BackwardInput);
      add(Workload::W, kind::BackwardWeight);
    }
    row.allocates[Workload::I] += recomputed;
    // What is never given back, or given twice, is no matter of the order.
    isMemoryKnown &=
        load.backward == Backward::None ||
        (held == 0 && row.heldAfterF() >= 0 && row.heldAfterI() >= 0);
  }

  void addEdges(SmallVectorImpl<Workload::Edge> &edges,
                const Workload::Stage &row, uint8_t slotBit) const {
    const Pipe &pipe = program.pipe(row.pipe);
    for (StageId source : sourcesOf(pipe, row.stage, slotBit)) {
      Time latency = 0;
      if (program.rankOfStage(row.pipe, source) != row.rank) {
        latency =
            durations.ofEdge(row.pipe, source, row.stage, pipe.firstMicrobatch);
        for (uint32_t m = pipe.firstMicrobatch;
             differ && m != pipe.endMicrobatch(); ++m)
          latency = std::min(latency,
                             durations.ofEdge(row.pipe, source, row.stage, m));
      }
      edges.push_back(
          {static_cast<uint32_t>(numbering(row.pipe, source)), latency});
    }
  }

  void addMemoryBudgets() {
    SmallVector<KindId, 3> known;
    if (saving) {
      if (auto kind = recomputeKind(program))
        known.push_back(*kind);
      if (auto moved = offloadKinds(program))
        known.append({moved->out, moved->in});
    }
    auto isKnown = [&](KindId kind) { return llvm::is_contained(known, kind); };
    for (KindId kind : program.kinds().ids())
      isMemoryKnown &= !program.kinds()[kind].restores || isKnown(kind);
    for (const CostSetting &setting : program.costs().of(Cost::Memory))
      isMemoryKnown &=
          !program.kinds()[setting.kind].isDeclared() || isKnown(setting.kind);
    bool differsInMemory =
        differ && program.costs().has({Cost::Scale, Cost::ScaleMemory});
    isMemoryKnown &= !differsInMemory && load.backward != Backward::Mixed;
    load.memoryBudget.resize(program.numRanks());
    for (RankId rank : firstIds<RankId>(program.numRanks()))
      if (auto limit = memory.limitOf(rank); limit && isMemoryKnown)
        load.memoryBudget[rank.value] = static_cast<Amount>(
            std::max<decimal::Sum>(*limit - memory.staticOf(rank), -1));
  }

  MemoryModel memory{program};
  MicrobatchScales scales{program};
  /// Where nodes have costs and groups have several members.
  std::optional<NodeOrders> nodes{};
  StageNumbering numbering{program.pipes()};
  Workload load{};
  const bool differ = microbatchesDiffer(program);
  bool isMemoryKnown =
      true; ///< Whether what ranks hold follows from the parts.
};

} // namespace

std::optional<KindId> ppcc::recomputeKind(const Program &program) {
  for (KindId id : program.kinds().ids())
    if (program.kinds()[id].restores == KindId(kind::Forward))
      return id;
  return std::nullopt;
}

std::optional<OffloadKinds> ppcc::offloadKinds(const Program &program) {
  auto isCopyBehind = [&](KindId id, KindId other) {
    const KindInfo &info = program.kinds()[id];
    return info.lane > lane::None && info.collective == Collective::None &&
           info.scope == KindScope::Microbatch &&
           llvm::any_of(info.rules, [&](const KindRule &rule) {
             return !rule.isBefore && llvm::is_contained(rule.kinds, other);
           });
  };
  for (KindId out : program.kinds().ids())
    for (KindId in : program.kinds().ids())
      if (isCopyBehind(out, KindId(kind::Forward)) && isCopyBehind(in, out))
        return OffloadKinds{out, in};
  return std::nullopt;
}

Workload Workload::of(const Program &program, const Durations &durations,
                      Backward backward, uint32_t maxGroupSize,
                      std::optional<ActivationPolicy> saving) {
  return Builder{program, durations, backward, maxGroupSize, saving}.run();
}

Workload Workload::of(const Program &program, const Durations &durations) {
  bool fused = false, split = false;
  size_t maxGroupSize = 1;
  for (RankId rank : program.ranks())
    for (RowRange item : program.items(rank)) {
      size_t members = 0;
      for (ActionId row : item) {
        fused |= program.kind(row) == KindId(kind::Backward);
        split |= program.kind(row) == KindId(kind::BackwardInput);
        members += program.kindOf(row).isCompute();
      }
      maxGroupSize = std::max(maxGroupSize, members);
    }
  Backward backward = fused   ? split ? Backward::Mixed : Backward::Fused
                      : split ? Backward::Split
                              : Backward::None;
  return of(program, durations, backward, static_cast<uint32_t>(maxGroupSize));
}
