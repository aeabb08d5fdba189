// In which order, and when, the nodes of actions and groups run on their lanes.
#include "ppcc/Analysis/NodeOrders.h"

using namespace ppcc;

NodeOrders::NodeOrders(const Program &program)
    : tables(program.nodes()), stages(program.pipes()), scales(program) {
  graphs.assign(program.kinds().size() * stages.size(), GraphUse::none);
  for (const GraphUse &use : tables.uses) {
    size_t first =
        use.kind.value * stages.size() + stages(use.pipe, StageId(0));
    uint32_t count = program.pipe(use.pipe).numStages();
    for (uint32_t stage = 0; stage != count; ++stage)
      graphs[first + stage] = use.graphs[use.graphs.size() == 1 ? 0 : stage];
  }
  std::map<std::string, uint32_t> nameNumber;
  for (uint32_t i = 0; i != tables.names.size(); ++i)
    nameNumber[tables.names[i]] = i;
  for (const CostSetting &cost : program.costs().of(Cost::Node))
    if (auto name = nameNumber.find(cost.node); name != nameNumber.end())
      costs[{cost.kind.value, name->second}] = cost.values.front();
  times.resize(tables.graphs.size());
}

static Time plus(Time a, Time b) {
  return std::min(a + b, NodeOrders::maxTime);
}

const std::vector<Time> &NodeOrders::timesOf(uint32_t graph) {
  std::vector<Time> &result = times[graph];
  if (result.empty())
    for (const GraphNode &node : tables.graphs[graph].nodes) {
      auto told = costs.find({node.part.value, node.name});
      result.push_back(told != costs.end()                   ? told->second
                       : node.cost != GraphNode::untold      ? node.cost
                       : costs.empty() && !tables.hasCosts() ? cost::unit
                                                             : 0);
    }
  return result;
}

std::vector<Time> NodeOrders::timesOf(const Member &member) {
  std::vector<Time> result = timesOf(member.graph);
  if (member.factor != scaling::unit)
    for (Time &time : result)
      time = scaling::apply(time, member.factor, maxTime);
  return result;
}

Time NodeOrders::serialTime(uint32_t graph) {
  Time sum = 0;
  for (Time time : timesOf(graph))
    sum = plus(sum, time);
  return sum;
}

const NodeOrder *NodeOrders::of(const Program &program, ActionId begin,
                                ActionId end) {
  key.clear();
  for (; begin != end; ++begin.value) {
    Action action = program[begin];
    key.push_back({graphOf(action), scales.timeFactor(action)});
    if (key.back().graph == GraphUse::none)
      return nullptr;
  }
  return &ordered();
}

const NodeOrder &NodeOrders::of(ArrayRef<uint32_t> members) {
  key.clear();
  for (uint32_t member : members)
    key.push_back({member, scaling::unit});
  return ordered();
}

const NodeOrder &NodeOrders::ordered() {
  if (auto found = orders.find(key); found != orders.end())
    return found->second;
  if (cached > maxCached) {
    orders.clear();
    cached = 0;
  }
  SmallVector<KindId, 4> kinds;
  for (const Member &member : key)
    kinds.push_back(tables.graphs[member.graph].kind);
  NodeOrder &order = orders[key];
  if (const NodePattern *pattern = tables.patternFor(kinds))
    followPattern(*pattern, order);
  else
    listSchedule(order);
  findHooks(order);
  order.number = made++;
  order.timed = llvm::count_if(order.places, [](const NodeOrder::Place &place) {
    return place.start != place.end;
  });
  cached += order.places.size();
  return order;
}

void NodeOrders::findHooks(NodeOrder &order) const {
  order.members.assign(key.size(), {0, order.length});
  for (const NodeOrder::Place &place : order.places) {
    const NodeGraph &graph = tables.graphs[key[place.member].graph];
    const GraphNode &node = graph.nodes[place.node];
    if (tables.isHook(graph, node, hook::recv))
      order.members[place.member].reads = place.start;
    else if (tables.isHook(graph, node, hook::send))
      order.members[place.member].gives = place.end;
  }
}

namespace {

/// Puts nodes on lanes, one after another.
class Lanes {
public:
  template <class Members>
  Lanes(const NodeGraphs &tables, const Members &members, NodeOrder &order)
      : free(tables.lanes.size()), order(order) {
    for (const auto &member : members) {
      graphs.push_back(&tables.graphs[member.graph]);
      ends.emplace_back(graphs.back()->nodes.size());
    }
  }

  const GraphNode &node(uint32_t member, uint32_t id) const {
    return graphs[member]->nodes[id];
  }
  const NodeGraph &graph(uint32_t member) const { return *graphs[member]; }
  Time freeAt(uint32_t lane) const { return free[lane]; }

  /// When all that the node needs has ended, as far as it has run.
  Time readyAt(uint32_t member, uint32_t id) const {
    Time ready = 0;
    for (uint32_t needed : node(member, id).needs)
      ready = std::max(ready, ends[member][needed]);
    return ready;
  }

  void launch(uint32_t member, uint32_t id, Time time) {
    Time &lane = free[node(member, id).lane];
    Time start = std::max(lane, readyAt(member, id));
    lane = ends[member][id] = plus(start, time);
    order.places.push_back({member, id, start, lane});
    order.length = std::max(order.length, lane);
  }

private:
  std::vector<Time> free; ///< By lane.
  std::vector<const NodeGraph *> graphs;
  std::vector<std::vector<Time>> ends; ///< By member and node.
  NodeOrder &order;
};

/// A node that may run once the time is `ready`.
struct Candidate {
  Time ready, wayToEnd;
  uint32_t member, node;
};

/// Of the candidates that may run: the longest way first, then the first in the
/// group.
struct LessUrgent {
  bool operator()(const Candidate &a, const Candidate &b) const {
    return std::tuple(-a.wayToEnd, a.member, a.node) >
           std::tuple(-b.wayToEnd, b.member, b.node);
  }
};
/// Of those that may not yet: the first to be ready, then as above.
struct Later {
  bool operator()(const Candidate &a, const Candidate &b) const {
    return a.ready != b.ready ? a.ready > b.ready : LessUrgent()(a, b);
  }
};

/// The nodes of one lane whose needs are known to end.
class LaneQueue {
public:
  void push(const Candidate &candidate) { waiting.push(candidate); }

  /// The best to run next on a lane that is free at `free`, and when it starts.
  std::optional<std::pair<Time, Candidate>> best(Time free) {
    for (; !waiting.empty() && waiting.top().ready <= free; waiting.pop())
      able.push(waiting.top());
    if (!able.empty())
      return std::pair(free, able.top());
    if (!waiting.empty())
      return std::pair(waiting.top().ready, waiting.top());
    return std::nullopt;
  }
  /// Takes what best() gave.
  void pop() { able.empty() ? waiting.pop() : able.pop(); }

private:
  std::priority_queue<Candidate, std::vector<Candidate>, Later> waiting;
  std::priority_queue<Candidate, std::vector<Candidate>, LessUrgent> able;
};

} // namespace

void NodeOrders::followPattern(const NodePattern &pattern, NodeOrder &order) {
  std::vector<NodeIndex> indices;
  std::vector<const NodeIndex *> members;
  std::vector<std::vector<Time>> times;
  indices.reserve(key.size());
  for (const Member &member : key) {
    indices.emplace_back(tables.graphs[member.graph]);
    members.push_back(&indices.back());
    times.push_back(timesOf(member));
  }
  Lanes lanes(tables, key, order);
  forEachPlace(pattern, members,
               [&](uint32_t member, uint32_t node, const PatternNode &) {
                 lanes.launch(member, node, times[member][node]);
               });
}

/// Of each node the longest way from its start to the end of its graph.
static std::vector<Time> waysToEnd(const NodeGraph &graph,
                                   ArrayRef<Time> times) {
  std::vector<Time> ways(times.begin(), times.end());
  // Behind a node stand those that need it, so their ways are complete.
  for (size_t i = ways.size(); i-- != 0;)
    for (uint32_t needed : graph.nodes[i].needs)
      ways[needed] = std::max(ways[needed], plus(times[needed], ways[i]));
  return ways;
}

// O(n (log n + lanes)) for n nodes.
void NodeOrders::listSchedule(NodeOrder &order) {
  Lanes lanes(tables, key, order);
  std::vector<LaneQueue> queues(tables.lanes.size());
  struct State {
    std::vector<Time> times, ways;
    std::vector<uint32_t> missing;              ///< Needs that have not run.
    std::vector<std::vector<uint32_t>> readers; ///< By node.
  };
  std::vector<State> members(key.size());
  auto push = [&](uint32_t member, uint32_t node) {
    queues[lanes.node(member, node).lane].push({lanes.readyAt(member, node),
                                                members[member].ways[node],
                                                member, node});
  };
  for (uint32_t i = 0; i != members.size(); ++i) {
    const NodeGraph &graph = lanes.graph(i);
    members[i].times = timesOf(key[i]);
    members[i].ways = waysToEnd(graph, members[i].times);
    members[i].readers.resize(graph.nodes.size());
    for (uint32_t node = 0; node != graph.nodes.size(); ++node) {
      const std::vector<uint32_t> &needs = graph.nodes[node].needs;
      members[i].missing.push_back(uint32_t(needs.size()));
      for (uint32_t needed : needs)
        members[i].readers[needed].push_back(node);
      if (needs.empty())
        push(i, node);
    }
  }
  while (true) {
    std::optional<std::pair<Time, Candidate>> next;
    size_t lane = 0;
    for (size_t i = 0; i != queues.size(); ++i)
      if (auto found = queues[i].best(lanes.freeAt(i));
          found && (!next || found->first < next->first ||
                    (found->first == next->first &&
                     LessUrgent()(next->second, found->second)))) {
        next = found;
        lane = i;
      }
    if (!next)
      return;
    queues[lane].pop();
    auto [ready, way, member, node] = next->second;
    lanes.launch(member, node, members[member].times[node]);
    for (uint32_t reader : members[member].readers[node])
      if (--members[member].missing[reader] == 0)
        push(member, reader);
  }
}
