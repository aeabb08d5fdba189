// Finds the action that does a given piece of work, and the neighbours of a
// stage, in constant time.
#include "ppcc/Analysis/ProgramIndex.h"

using namespace ppcc;

ProgramIndex::ProgramIndex(const Program &program)
    : pairs(program.pipes()), stages(program.pipes()), ruleIndex(program) {
  for (const Pipe &pipe : program.pipes()) {
    addEdges(pipe, false);
    addEdges(pipe, true);
  }
  // A whole program has an action for each pair at least; so numbers in a short
  // text cannot ask for much memory.
  constexpr uint64_t slack = 1u << 20;
  hasSlots = pairs.size() <= program.size() + slack;
  if (hasSlots)
    addDefiners(program);
}

void ProgramIndex::addEdges(const Pipe &pipe, bool upward) {
  EdgeTable &table = upward ? above : below;
  uint32_t base = uint32_t(table.starts.size() - 1),
           numStages = pipe.numStages();
  auto from = [&](std::pair<StageId, StageId> edge) {
    return upward ? edge.first : edge.second;
  };
  auto to = [&](std::pair<StageId, StageId> edge) {
    return upward ? edge.second : edge.first;
  };

  std::vector<uint32_t> degrees(numStages);
  for (uint32_t stage = 0; stage != numStages; ++stage)
    degrees[stage] = upward ? stage + 1 < numStages : stage > 0;
  for (StageId gap : pipe.gaps)
    --degrees[upward ? gap.value : gap.value + 1];
  for (auto edge : pipe.skipEdges)
    ++degrees[from(edge).value];
  for (uint32_t degree : degrees)
    table.starts.push_back(table.starts.back() + degree);

  table.ends.resize(table.starts.back());
  std::vector<uint32_t> next(table.starts.begin() + base,
                             table.starts.end() - 1);
  auto add = [&](uint32_t stage, StageId end) {
    table.ends[next[stage]++] = end;
  };
  // Ascending: a neighbour above comes before all skip edges, one below after
  // them.
  auto addNeighbours = [&] {
    auto gap = pipe.gaps.begin();
    for (uint32_t stage = 0; stage + 1 < numStages; ++stage)
      if (gap != pipe.gaps.end() && gap->value == stage)
        ++gap;
      else if (upward)
        add(stage, StageId(stage + 1));
      else
        add(stage + 1, StageId(stage));
  };
  if (upward)
    addNeighbours();
  for (auto edge : pipe.skipEdges)
    add(from(edge).value, to(edge));
  if (!upward)
    addNeighbours();
}

void ProgramIndex::addDefiners(const Program &program) {
  definers.assign(pairs.size() * slot::count, none);
  for (ActionId id : program.rows()) {
    const KindInfo &info = program.kindOf(id);
    if (!info.isCompute())
      continue;
    Action action = program[id];
    for (uint8_t slotBit : slotsIn(info.defines)) {
      uint32_t &definer = definers[slotOf(pairs(action), slotBit)];
      if (definer == none)
        definer = id.value;
    }
  }
}
