// In which order, and when, the nodes of actions and groups run on their lanes.
#include "ppcc/Analysis/Cost/NodeOrders.h"

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
      auto given = costs.find({node.part.value, node.name});
      result.push_back(given != costs.end()                  ? given->second
                       : node.cost != GraphNode::unset       ? node.cost
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
  NodeOrder &order = orders[key];
  place(order);
  findHooks(order);
  order.number = made++;
  order.timed = llvm::count_if(order.scheduled,
                               [](const NodeOrder::ScheduledNode &place) {
                                 return place.start != place.end;
                               });
  cached += order.scheduled.size();
  return order;
}

void NodeOrders::findHooks(NodeOrder &order) const {
  order.members.assign(key.size(), {0, order.length});
  for (const NodeOrder::ScheduledNode &place : order.scheduled) {
    const NodeGraph &graph = tables.graphs[key[place.member].graph];
    const GraphNode &node = graph.nodes[place.node];
    if (tables.isHook(graph, node, hook::recv))
      order.members[place.member].reads = place.start;
    else if (tables.isHook(graph, node, hook::send))
      order.members[place.member].gives = place.end;
  }
}

namespace {

/// A member of a group with what its nodes take.
struct TimedGraph {
  const NodeGraph &graph;
  std::vector<Time> times;
};

/// Puts nodes on lanes, one after another.
class Lanes {
public:
  Lanes(size_t lanes, ArrayRef<TimedGraph> members, NodeOrder &order)
      : free(lanes), members(members), order(order) {
    for (const TimedGraph &member : members)
      ends.emplace_back(member.times.size());
  }

  Time freeAt(uint32_t lane) const { return free[lane]; }

  /// When all that the node needs has ended, as far as it has run.
  Time readyAt(uint32_t member, uint32_t id) const {
    Time ready = 0;
    for (uint32_t needed : members[member].graph.nodes[id].needs)
      ready = std::max(ready, ends[member][needed]);
    return ready;
  }

  void launch(uint32_t member, uint32_t id) {
    Time &lane = free[members[member].graph.nodes[id].lane];
    Time start = std::max(lane, readyAt(member, id));
    lane = ends[member][id] = plus(start, members[member].times[id]);
    order.scheduled.push_back({member, id, start, lane});
    order.length = std::max(order.length, lane);
  }

private:
  std::vector<Time> free; ///< By lane.
  ArrayRef<TimedGraph> members;
  std::vector<std::vector<Time>> ends; ///< By member and node.
  NodeOrder &order;
};

/// A node that may run, the more urgent the smaller: the longest way to the end
/// first, then the first in the group.
struct Candidate {
  Time negatedPathLength;
  uint32_t member, node;
  auto operator<=>(const Candidate &) const = default;
};
/// When it may run, or does.
using Start = std::pair<Time, Candidate>;

/// The nodes of one lane whose needs are known to end.
class LaneQueue {
public:
  void push(const Start &candidate) { waiting.push(candidate); }

  /// The best to run next on a lane that is free at `free`, and when it starts.
  std::optional<Start> best(Time free) {
    for (; !waiting.empty() && waiting.top().first <= free; waiting.pop())
      able.push(waiting.top().second);
    if (!able.empty())
      return Start(free, able.top());
    return waiting.empty() ? std::nullopt : std::optional(waiting.top());
  }
  /// Takes what best() gave.
  void pop() { able.empty() ? waiting.pop() : able.pop(); }

private:
  template <class T>
  using Heap = std::priority_queue<T, std::vector<T>, std::greater<>>;

  Heap<Start> waiting;
  Heap<Candidate> able;
};

/// Of each node the longest way from its start to the end of its graph.
std::vector<Time> longestPathsToEnd(const TimedGraph &member) {
  std::vector<Time> pathLengths = member.times;
  // Behind a node stand those that need it, so their ways are complete.
  for (size_t i = pathLengths.size(); i-- != 0;)
    for (uint32_t needed : member.graph.nodes[i].needs)
      pathLengths[needed] = std::max(
          pathLengths[needed], plus(member.times[needed], pathLengths[i]));
  return pathLengths;
}

void followPattern(const NodePattern &pattern, ArrayRef<TimedGraph> members,
                   Lanes &lanes) {
  std::vector<NodeIndex> indices;
  std::vector<const NodeIndex *> pointers;
  indices.reserve(members.size());
  for (const TimedGraph &member : members)
    pointers.push_back(&indices.emplace_back(member.graph));
  forEachPatternNode(pattern, pointers,
                     [&](uint32_t member, uint32_t node, const PatternNode &) {
                       lanes.launch(member, node);
                     });
}

// O(n (log n + lanes)) for n nodes.
void listSchedule(ArrayRef<TimedGraph> members, Lanes &lanes,
                  std::vector<LaneQueue> queues) {
  struct State {
    std::vector<Time> pathLengths;
    std::vector<uint32_t> missing;              ///< Needs that have not run.
    std::vector<std::vector<uint32_t>> readers; ///< By node.
  };
  std::vector<State> states;
  auto push = [&](uint32_t member, uint32_t node) {
    queues[members[member].graph.nodes[node].lane].push(
        {lanes.readyAt(member, node),
         {-states[member].pathLengths[node], member, node}});
  };
  for (auto [i, member] : llvm::enumerate(members)) {
    State &state =
        states.emplace_back(State{longestPathsToEnd(member), {}, {}});
    state.readers.resize(state.pathLengths.size());
    for (auto [id, node] : llvm::enumerate(member.graph.nodes)) {
      state.missing.push_back(node.needs.size());
      for (uint32_t needed : node.needs)
        state.readers[needed].push_back(id);
      if (node.needs.empty())
        push(i, id);
    }
  }
  while (true) {
    std::optional<Start> next;
    LaneQueue *from = nullptr;
    for (auto [lane, queue] : llvm::enumerate(queues))
      if (auto found = queue.best(lanes.freeAt(lane));
          found && (!next || *found < *next)) {
        next = found;
        from = &queue;
      }
    if (!next)
      return;
    from->pop();
    auto [pathLength, member, node] = next->second;
    lanes.launch(member, node);
    for (uint32_t reader : states[member].readers[node])
      if (--states[member].missing[reader] == 0)
        push(member, reader);
  }
}

} // namespace

void NodeOrders::place(NodeOrder &order) {
  std::vector<TimedGraph> members;
  SmallVector<KindId, 4> kinds;
  for (const Member &member : key) {
    const NodeGraph &graph = tables.graphs[member.graph];
    members.push_back({graph, timesOf(member)});
    kinds.push_back(graph.kind);
  }
  Lanes lanes(tables.lanes.size(), members, order);
  if (const NodePattern *pattern = tables.patternFor(kinds))
    followPattern(*pattern, members, lanes);
  else
    listSchedule(members, lanes, std::vector<LaneQueue>(tables.lanes.size()));
}
