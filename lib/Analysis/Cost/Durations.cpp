// How long each action of a program takes.
#include "ppcc/Analysis/Cost/Durations.h"

using namespace ppcc;

static constexpr Time unset = -1;

Durations::Durations(const Program &program)
    : stages(program.pipes()), scales(program) {
  if (const CostSetting *given = program.costs().group()) {
    group = given->what;
    ofGroups = given->values.front();
  }
  addEdges(program);
  if (!program.nodes().empty() && program.hasNodeCosts()) {
    nodes = std::make_shared<NodeOrders>(program);
    hasHooks = llvm::any_of(program.nodes().names, [](StringRef name) {
      return name == hook::recv || name == hook::send;
    });
    stride = std::max<size_t>(stages.size(), 1);
  }
  for (const CostSetting &setting : program.costs().of(Cost::Action))
    if (setting.pipe)
      stride = std::max<size_t>(stages.size(), 1);

  ArrayRef<KindInfo> kinds = program.kinds().rows();
  table.assign(kinds.size() * stride, unset);
  auto row = [&](KindId kind) {
    return MutableArrayRef(table).slice(kind.value * stride, stride);
  };
  for (const CostSetting &setting : program.costs().of(Cost::Action))
    broadcast(setting, program, row(setting.kind));
  // What B takes is shared by I and W, where only that is said.
  for (KindId whole : program.kinds().ids()) {
    const KindInfo &info = kinds[whole.value];
    if (!info.isCompute() || info.defines == info.mainSlot())
      continue;
    SmallVector<KindId, 2> parts;
    for (uint8_t slotBit : slotsIn(info.defines))
      if (auto part = program.kinds().find(KindClass::Compute, slotBit))
        parts.push_back(*part);
    for (size_t i = 0; i != stride; ++i) {
      Time rest = row(whole)[i];
      int64_t open = 0;
      for (KindId part : parts)
        row(part)[i] == unset ? ++open : rest -= row(part)[i];
      if (row(whole)[i] != unset)
        for (KindId part : parts)
          if (Time &time = row(part)[i]; time == unset)
            rest -= time = std::max<Time>(rest, 0) / open--;
    }
  }
  for (bool single : {true, false})
    for (uint32_t kind = 0; kind != kinds.size(); ++kind) {
      const KindInfo &info = kinds[kind];
      if (single != (info.defines == info.mainSlot()))
        continue;
      for (size_t i = 0; i != stride; ++i) {
        Time &time = row(KindId(kind))[i];
        if (info.lane == lane::None)
          time = 0;
        if (time != unset)
          continue;
        time = 0;
        for (uint8_t slotBit : slotsIn(info.isCompute() ? info.defines : 0)) {
          auto part = program.kinds().find(KindClass::Compute, slotBit);
          time += single || !part ? cost::unit : row(*part)[i];
        }
      }
    }
  if (nodes)
    for (auto [time, graph] : llvm::zip(table, nodes->graphsOfKinds()))
      if (graph != GraphUse::none)
        time = nodes->of(graph).length;
}

Time Durations::maxDuration(const Action &action) const {
  uint32_t graph = nodes ? nodes->graphOf(action) : GraphUse::none;
  return graph == GraphUse::none
             ? of(action)
             : scales.time(action, nodes->serialTime(graph), maxSum);
}

void ppcc::broadcast(const CostSetting &setting, const Program &program,
                     MutableArrayRef<int64_t> row) {
  row = stageRange(setting, program, row);
  if (setting.values.size() == 1)
    std::ranges::fill(row, setting.values.front());
  else
    llvm::copy(setting.values, row.begin());
}

/// What `bytes` take at `bandwidth`, rounded; more than all times of a program
/// may be when that is too much.
static Time transferTime(Amount bytes, Amount bandwidth) {
  if (bandwidth == 0)
    return 0;
  __int128 time = (__int128(bytes) * cost::unit + bandwidth / 2) / bandwidth;
  return Time(std::min<__int128>(time, Durations::maxSum));
}

Time Durations::transfer(const EdgeCost &edgeCost, PipeId pipe,
                         uint32_t microbatch) const {
  return transferTime(scales.bytes(pipe, microbatch, edgeCost.bytes),
                      edgeCost.bandwidth);
}

namespace {

/// What is known of messages from one rank to another.
struct Link {
  std::optional<Time> latency;
  std::optional<Amount> bandwidth;
};

} // namespace

/// Reads what is said of links, as far as nothing later overrides it.
static std::map<std::pair<RankId, RankId>, Link>
linksOf(const Program &program) {
  std::map<std::pair<RankId, RankId>, Link> result;
  for (const CostSetting &setting : program.costs().settings) {
    bool isLatency = setting.what == Cost::Latency;
    if (!isLatency && setting.what != Cost::Bandwidth)
      continue;
    if (!setting.link) { // Said of all ranks again.
      for (auto &[ranks, link] : result)
        isLatency ? link.latency.reset() : link.bandwidth.reset();
      continue;
    }
    auto [from, to] = *setting.link;
    Link &link = result[{from, to}];
    isLatency ? link.latency = setting.values.front()
              : link.bandwidth = setting.values.front();
  }
  return result;
}

void Durations::addEdges(const Program &program) {
  auto byStage = [&](Cost what, int64_t otherwise) {
    std::vector<int64_t> values(stages.size(), otherwise);
    for (const CostSetting &setting : program.costs().of(what))
      if (!setting.link)
        broadcast(setting, program, values);
    return values;
  };
  std::vector<int64_t> latencies = byStage(Cost::Latency, 0),
                       bandwidths = byStage(Cost::Bandwidth, 0),
                       bytes = byStage(Cost::Bytes, unset);
  auto edgeCostOf = [&](size_t edge, Link link, std::optional<Amount> tensors) {
    EdgeCost edgeCost{link.latency.value_or(latencies[edge]),
                      tensors.value_or(std::max<Amount>(bytes[edge], 0)),
                      link.bandwidth.value_or(bandwidths[edge])};
    if (edgeCost.bandwidth == 0 || !scales.hasBytes())
      edgeCost = {edgeCost.latency +
                  transferTime(edgeCost.bytes, edgeCost.bandwidth)};
    return edgeCost;
  };
  for (size_t edge = 0; edge != stages.size(); ++edge)
    edgeCosts.push_back(edgeCostOf(edge, {}, {}));
  // If no message size is given, it follows from the tensors.
  std::map<EdgeKey, Amount> tensors;
  for (auto [i, pipe] : llvm::enumerate(program.pipes()))
    for (const EdgeTensors &edge : pipe.tensors)
      for (bool isGradient : {false, true})
        if (auto sum = edge.bytes(isGradient);
            sum && bytes[stages(PipeId(i), edge.from)] == unset)
          tensors[keyOf(PipeId(i), isGradient ? edge.to : edge.from,
                        isGradient ? edge.from : edge.to)] =
              *sum > amount::max / amount::unit ? amount::max
                                                : *sum * amount::unit;
  auto links = linksOf(program);
  if (!links.empty() || !tensors.empty())
    forEachEdge(program.pipes(), [&](PipeId pipe, StageId from, StageId to) {
      size_t edge = stages(pipe, std::min(from, to));
      EdgeKey key = keyOf(pipe, from, to);
      auto link = links.find(
          {program.rankOfStage(pipe, from), program.rankOfStage(pipe, to)});
      auto sum = tensors.find(key);
      EdgeCost edgeCost = edgeCostOf(
          edge, link == links.end() ? Link() : link->second,
          sum == tensors.end() ? std::nullopt : std::optional(sum->second));
      if (edgeCost != edgeCosts[edge])
        edgeCostOverrides[key] = edgeCost;
    });
  if (llvm::all_equal(edgeCosts))
    edgeCosts.resize(std::min<size_t>(edgeCosts.size(), 1));
}

Time Durations::of(const Program &program, ActionId begin, ActionId end) const {
  if (end.value - begin.value == 1) {
    Action action = program[begin];
    return program.kindOf(action).isAsync() ? 0 : of(action);
  }
  if (const NodeOrder *order = nodes ? nodes->of(program, begin, end) : nullptr)
    return order->length;
  Time sum = 0, longest = 0;
  uint32_t actions = 0;
  for (; begin != end; ++begin.value) {
    Action action = program[begin];
    Time time = of(action);
    sum += time;
    longest = std::max(longest, time);
    actions += program.kindOf(action).isCompute();
  }
  return actions > 1 ? ofGroup(sum, longest) : sum;
}

std::vector<Durations::HookOffsets>
Durations::hookOffsets(const Program &program) const {
  std::vector<HookOffsets> rows(hasHooks ? program.size() : 0);
  if (!hasHooks)
    return rows;
  for (RankId rank : program.ranks())
    for (auto [begin, end] : program.items(rank))
      if (const NodeOrder *order = nodes->of(program, begin, end))
        for (auto [i, member] : llvm::enumerate(order->members))
          rows[begin.value + i] = {order->length - member.gives, member.reads};
  return rows;
}

Time Durations::ofGroup(Time sum, Time longest) const {
  if (group == Cost::Overlap)
    return ofGroups;
  Time whole = group == Cost::GroupMax ? longest : sum;
  return ofGroups == cost::unit
             ? whole
             : Time((__int128(whole) * ofGroups + cost::unit / 2) / cost::unit);
}

bool Durations::fits(const Program &program, uint64_t messages,
                     int times) const {
  Time message = 0;
  auto add = [&](const EdgeCost &edgeCost) {
    Amount bytes =
        scaling::apply(edgeCost.bytes, scales.maxBytesFactor(), amount::max);
    message = std::max(message, edgeCost.latency +
                                    transferTime(bytes, edgeCost.bandwidth));
  };
  llvm::for_each(edgeCosts, add);
  llvm::for_each(llvm::make_second_range(edgeCostOverrides), add);
  __int128 sum = __int128(message) * messages, computes = 0;
  for (ActionId row : program.rows()) {
    computes += maxDuration(program[row]);
    sum += (group == Cost::Overlap
                ? ofGroups
                : 1); // A group is rounded up by less than that.
  }
  // A group takes no more than this, whatever its rule.
  sum += computes *
         std::max(group == Cost::Overlap ? 0 : ofGroups, cost::unit) /
         cost::unit;
  return sum * times <= maxSum;
}
