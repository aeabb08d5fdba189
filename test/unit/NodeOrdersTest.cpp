// Orders of nodes against what every order must keep, on random graphs.
#include "ppcc/Analysis/Cost/NodeOrders.h"

#include <gtest/gtest.h>

#include <random>

using namespace ppcc;

namespace {

/// One stage and a group of `members` kinds with random graphs on three lanes.
class RandomGraphs {
public:
  RandomGraphs(unsigned seed, uint32_t members) : random(seed) {
    Pipe pipe;
    pipe.name = "main";
    pipe.numMicrobatches = 1;
    pipe.rankOfStage = {RankId(0)};
    program.editHead().pipes.push_back(pipe);
    program.editHead().numRanks = 1;
    NodeGraphs &tables = program.editHead().nodes;
    tables.lanes = {"a", "b", "c"};
    for (uint32_t name = 0; name != 12; ++name)
      tables.names.push_back("n" + std::to_string(name));
    for (uint32_t kind = 0; kind != members; ++kind) {
      tables.graphs.push_back(graph(KindId(kind)));
      tables.uses.push_back({KindId(kind), PipeId(0), {kind}});
      for (const GraphNode &node : tables.graphs.back().nodes)
        program.editHead().costs.settings.push_back(
            {Cost::Node,
             node.part,
             tables.names[node.name],
             {},
             {Time(random() % 4) * cost::unit}});
    }
  }

  Time cost(uint32_t member, uint32_t node) const {
    const GraphNode &found = program.nodes().graphs[member].nodes[node];
    for (const CostSetting &cost : program.costs().of(Cost::Node))
      if (cost.kind == found.part &&
          cost.node == program.nodes().names[found.name])
        return cost.values.front();
    return 0;
  }

  Program program;

private:
  NodeGraph graph(KindId kind) {
    NodeGraph graph;
    graph.kind = kind;
    uint32_t count = 1 + random() % 12;
    for (uint32_t i = 0; i != count; ++i) {
      GraphNode node{kind, i, uint32_t(random() % 3), GraphNode::noLayer, {}};
      for (uint32_t needed = 0; needed != i; ++needed)
        if (random() % 3 == 0)
          node.needs.push_back(needed);
      graph.nodes.push_back(node);
    }
    return graph;
  }

  std::mt19937 random;
};

/// Checks an order of all members of `graphs`.
void checkOrder(const RandomGraphs &graphs, const NodeOrder &order) {
  const NodeGraphs &tables = graphs.program.nodes();
  std::map<std::pair<uint32_t, uint32_t>, Time> ends;
  std::map<uint32_t, Time> busy, lastStart;
  Time serial = 0;
  for (const NodeOrder::ScheduledNode &place : order.scheduled) {
    const GraphNode &node = tables.graphs[place.member].nodes[place.node];
    Time time = graphs.cost(place.member, place.node);
    EXPECT_EQ(place.end - place.start, time);
    Time earliest = busy.count(node.lane) ? lastStart[node.lane] : 0;
    for (uint32_t needed : node.needs) {
      ASSERT_TRUE(ends.count({place.member, needed}));
      earliest = std::max(earliest, ends[{place.member, needed}]);
    }
    // As early as its lane and its needs allow.
    EXPECT_EQ(place.start, earliest);
    EXPECT_TRUE(
        ends.emplace(std::pair(place.member, place.node), place.end).second);
    lastStart[node.lane] = place.end;
    busy[node.lane] += time;
    serial += time;
  }
  size_t nodes = 0;
  for (const NodeGraph &graph : tables.graphs)
    nodes += graph.nodes.size();
  EXPECT_EQ(order.scheduled.size(), nodes);
  EXPECT_LE(order.length, serial);
  for (auto [lane, time] : busy)
    EXPECT_GE(order.length, time);
}

TEST(NodeOrders, ListSchedulesKeepNeedsAndLanes) {
  for (unsigned seed = 0; seed != 300; ++seed) {
    RandomGraphs graphs(seed, 1 + seed % 4);
    NodeOrders orders(graphs.program);
    std::vector<uint32_t> members;
    for (uint32_t i = 0; i != graphs.program.nodes().graphs.size(); ++i)
      members.push_back(i);
    checkOrder(graphs, orders.of(members));
  }
}

TEST(NodeOrders, ListSchedulesLeaveNoLaneIdleThatCouldRun) {
  for (unsigned seed = 0; seed != 300; ++seed) {
    RandomGraphs graphs(seed, 2);
    NodeOrders orders(graphs.program);
    const NodeOrder &order = orders.of({0, 1});
    const NodeGraphs &tables = graphs.program.nodes();
    std::map<std::pair<uint32_t, uint32_t>, Time> ends;
    for (const NodeOrder::ScheduledNode &place : order.scheduled)
      ends[{place.member, place.node}] = place.end;
    // While a node waits, from when its needs have ended, its lane is busy.
    for (const NodeOrder::ScheduledNode &place : order.scheduled) {
      const GraphNode &node = tables.graphs[place.member].nodes[place.node];
      Time ready = 0, covered = 0;
      for (uint32_t needed : node.needs)
        ready = std::max(ready, ends[{place.member, needed}]);
      for (const NodeOrder::ScheduledNode &other : order.scheduled)
        if (tables.graphs[other.member].nodes[other.node].lane == node.lane)
          covered += std::max<Time>(0, std::min(other.end, place.start) -
                                           std::max(other.start, ready));
      EXPECT_EQ(covered, place.start - ready);
    }
  }
}

TEST(NodeOrders, PatternsThatFitAGraphGiveTheSameOrderOfIt) {
  for (unsigned seed = 0; seed != 300; ++seed) {
    RandomGraphs graphs(seed, 2);
    NodeGraphs &tables = graphs.program.editHead().nodes;
    NodePattern pattern;
    pattern.kinds = {KindId(0), KindId(1)};
    // The nodes of a graph stand behind those that they need.
    for (uint32_t i = 0; i != 12; ++i)
      for (const NodeGraph &graph : tables.graphs)
        if (i < graph.nodes.size())
          pattern.before.push_back({graph.kind, graph.nodes[i].name, false});
    for (const NodeGraph &graph : tables.graphs)
      ASSERT_FALSE(findPatternError(pattern, graph));
    tables.patterns.push_back(pattern);
    NodeOrders orders(graphs.program);
    checkOrder(graphs, orders.of({0, 1}));
  }
}

TEST(NodeOrders, TimesDoNotOverflow) {
  RandomGraphs graphs(7, 2);
  for (CostSetting &cost : graphs.program.editHead().costs.settings)
    cost.values = {cost::max};
  graphs.program.editHead().nodes.graphs[0].nodes.resize(1);
  NodeGraph &graph = graphs.program.editHead().nodes.graphs[0];
  for (uint32_t i = 1; i != 1000; ++i)
    graph.nodes.push_back(
        {KindId(0), graph.nodes[0].name, 0, GraphNode::noLayer, {i - 1}});
  NodeOrders orders(graphs.program);
  EXPECT_EQ(orders.serialTime(0), NodeOrders::maxTime);
  EXPECT_EQ(orders.of({0, 1}).length, NodeOrders::maxTime);
}

} // namespace
