// How long each action of a program takes.
#include "ppcc/Analysis/Durations.h"

using namespace ppcc;

static constexpr Time untold = -1;

Durations::Durations(const Program &program)
    : stages(program.pipes()), scales(program) {
  if (const CostSetting *told = program.costs().group()) {
    group = told->what;
    ofGroups = told->values.front();
  }
  addEdges(program);
  if (!program.nodes().empty() &&
      (program.costs().has({Cost::Node}) || program.nodes().hasCosts())) {
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
  table.assign(kinds.size() * stride, untold);
  auto row = [&](KindId kind) { return table.begin() + kind.value * stride; };
  for (const CostSetting &setting : program.costs().of(Cost::Action))
    if (stride == 1)
      *row(setting.kind) = setting.values.front();
    else
      fill(row(setting.kind), setting.pipe, setting.values, program);
  for (bool single : {true, false})
    for (uint32_t kind = 0; kind != kinds.size(); ++kind) {
      const KindInfo &info = kinds[kind];
      if (single != (info.defines == info.mainSlot()))
        continue;
      for (size_t i = 0; i != stride; ++i) {
        Time &time = row(KindId(kind))[i];
        if (info.lane == lane::None)
          time = 0;
        if (time != untold)
          continue;
        time = 0;
        for (uint8_t slotBit : slotsIn(info.isCompute() ? info.defines : 0)) {
          auto part = program.kinds().find(KindClass::Compute, slotBit);
          time += single || !part ? cost::unit : row(*part)[i];
        }
      }
    }
  if (nodes)
    addNodes(program);
}

void Durations::addNodes(const Program &program) {
  for (const GraphUse &use : program.nodes().uses) {
    size_t first = use.kind.value * stride + stages(use.pipe, StageId(0));
    for (uint32_t i = 0; i != program.pipe(use.pipe).numStages(); ++i)
      if (uint32_t graph = use.graphs[use.graphs.size() == 1 ? 0 : i];
          graph != GraphUse::none)
        table[first + i] = nodes->of(graph).length;
  }
}

Time Durations::longest(const Action &action) const {
  uint32_t graph = nodes ? nodes->graphOf(action) : GraphUse::none;
  return graph == GraphUse::none
             ? of(action)
             : scales.time(action, nodes->serialTime(graph), maxSum);
}

/// Puts the values of a setting into a row of all stages.
template <class Column>
void Durations::fill(Column row, const std::optional<PipeId> &pipe,
                     ArrayRef<int64_t> values, const Program &program) const {
  if (!pipe)
    std::fill_n(row, stages.size(), values.front());
  else if (values.size() == 1)
    std::fill_n(row + stages(*pipe, StageId(0)),
                program.pipes()[pipe->value].numStages(), values.front());
  else
    std::copy(values.begin(), values.end(), row + stages(*pipe, StageId(0)));
}

/// What `bytes` take at `bandwidth`, rounded; more than all times of a program
/// may be when that is too much.
static Time transferTime(Amount bytes, Amount bandwidth) {
  if (bandwidth == 0)
    return 0;
  __int128 time = (__int128(bytes) * cost::unit + bandwidth / 2) / bandwidth;
  return Time(std::min<__int128>(time, Durations::maxSum));
}

std::map<Durations::LinkKey, Durations::Link>
Durations::linksOf(const Program &program) const {
  std::map<LinkKey, Link> result;
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
    Link &link = result[{from.value, to.value}];
    isLatency ? link.latency = setting.values.front()
              : link.bandwidth = setting.values.front();
  }
  return result;
}

void Durations::addEdges(const Program &program) {
  const CostModel &costs = program.costs();
  std::vector<int64_t> latencies(stages.size()), bandwidths(stages.size()),
      bytes(stages.size(), untold);
  auto gather = [&](Cost what, std::vector<int64_t> &into) {
    for (const CostSetting &setting : costs.of(what))
      if (!setting.link)
        fill(into.begin(), setting.pipe, setting.values, program);
  };
  gather(Cost::Latency, latencies);
  gather(Cost::Bandwidth, bandwidths);
  gather(Cost::Bytes, bytes);
  std::map<LinkKey, Link> known = linksOf(program);
  auto isBandwidth = [](Amount bandwidth) { return bandwidth != 0; };
  bool hasBandwidth = llvm::any_of(bandwidths, isBandwidth);
  for (const auto &[ranks, link] : known)
    hasBandwidth |= link.bandwidth.has_value();
  bool isTensor = hasBandwidth && addTensors(program, bytes);
  for (int64_t &amount : bytes)
    amount = std::max<int64_t>(amount, 0);
  bool isSplit = hasBandwidth && (isTensor || scales.hasBytes());
  if (isSplit)
    for (size_t i = 0; i != stages.size(); ++i)
      transfers.push_back({bytes[i], bandwidths[i]});
  if (!known.empty())
    forEachEdge(program.pipes(), [&](PipeId pipe, StageId from, StageId to) {
      auto link = known.find({program.rankOfStage(pipe, from).value,
                              program.rankOfStage(pipe, to).value});
      if (link == known.end())
        return;
      size_t edge = edgeOf(pipe, from, to);
      Time time = link->second.latency.value_or(latencies[edge]);
      Amount bandwidth = link->second.bandwidth.value_or(bandwidths[edge]);
      EdgeKey key = keyOf(pipe, from, to);
      if (isSplit)
        linkBandwidths[key] = bandwidth;
      else
        time += transferTime(bytes[edge], bandwidth);
      links[key] = time;
    });
  bool differ = false;
  for (size_t i = 0; i != stages.size(); ++i) {
    if (!isSplit)
      latencies[i] += transferTime(bytes[i], bandwidths[i]);
    differ |= latencies[i] != latencies[0];
  }
  latency = stages.size() == 0 ? 0 : latencies[0];
  if (differ)
    edgeTimes = std::move(latencies);
}

Time Durations::ofLink(PipeId pipe, StageId from, StageId to,
                       Time otherwise) const {
  auto found = links.find(keyOf(pipe, from, to));
  return found == links.end() ? otherwise : found->second;
}

bool Durations::addTensors(const Program &program, ArrayRef<int64_t> bytes) {
  for (auto [i, pipe] : llvm::enumerate(program.pipes()))
    for (const EdgeTensors &edge : pipe.tensors) {
      if (bytes[stages(PipeId(i), edge.from)] != untold)
        continue;
      auto add = [&](StageId from, StageId to, bool isGradient) {
        if (auto sum = edge.bytes(isGradient))
          tensorBytes[keyOf(PipeId(i), from, to)] =
              *sum > amount::max / amount::unit ? amount::max
                                                : *sum * amount::unit;
      };
      add(edge.from, edge.to, false);
      add(edge.to, edge.from, true);
    }
  return !tensorBytes.empty();
}

Durations::Transfer Durations::transferOf(const EdgeKey &key) const {
  PipeId pipe(key.first >> 32);
  StageId from(uint32_t(key.first)), to(key.second);
  Transfer way = transfers[edgeOf(pipe, from, to)];
  if (auto found = tensorBytes.find(key); found != tensorBytes.end())
    way.bytes = found->second;
  if (auto found = linkBandwidths.find(key); found != linkBandwidths.end())
    way.bandwidth = found->second;
  return way;
}

Time Durations::transfer(PipeId pipe, StageId from, StageId to,
                         uint32_t microbatch) const {
  Transfer way = transferOf(keyOf(pipe, from, to));
  return transferTime(scales.bytes(pipe, microbatch, way.bytes), way.bandwidth);
}

Time Durations::of(const Program &program, ActionId begin, ActionId end) const {
  if (end.value - begin.value == 1) {
    Action action = program[begin];
    return program.kindOf(action).isBeside() ? 0 : of(action);
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

std::vector<Durations::Slack> Durations::slacks(const Program &program) const {
  std::vector<Slack> rows(hasHooks ? program.size() : 0);
  for (uint32_t rank = 0; hasHooks && rank != program.ranksBegun(); ++rank) {
    ActionId begin = program.begin(RankId(rank)), end;
    for (; begin != program.end(RankId(rank)); begin = end) {
      end = program.groupEnd(begin, RankId(rank));
      if (const NodeOrder *order = nodes->of(program, begin, end))
        for (auto [i, member] : llvm::enumerate(order->members))
          rows[begin.value + i] = {order->length - member.gives, member.reads};
    }
  }
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

/// The longest that bytes take on any edge.
Time Durations::longestTransfer() const {
  Time longest = 0;
  auto add = [&](Transfer way) {
    Amount bytes = scaling::apply(way.bytes, scales.mostBytes(), amount::max);
    longest = std::max(longest, transferTime(bytes, way.bandwidth));
  };
  for (const Transfer &way : transfers)
    add(way);
  if (!transfers.empty())
    for (const auto *table : {&tensorBytes, &linkBandwidths})
      for (const auto &[key, amount] : *table)
        add(transferOf(key));
  return longest;
}

bool Durations::fits(const Program &program, uint64_t messages) const {
  Time message = latency;
  for (Time time : edgeTimes)
    message = std::max(message, time);
  for (const auto &[key, time] : links)
    message = std::max(message, time);
  message += longestTransfer();
  __int128 sum = __int128(message) * messages, computes = 0;
  for (ActionId row : program.rows()) {
    computes += longest(program[row]);
    sum += (group == Cost::Overlap
                ? ofGroups
                : 1); // A group is rounded up by less than that.
  }
  // A group takes no more than this, whatever its rule.
  return sum + computes *
                   std::max(group == Cost::Overlap ? 0 : ofGroups, cost::unit) /
                   cost::unit <=
         maxSum;
}
