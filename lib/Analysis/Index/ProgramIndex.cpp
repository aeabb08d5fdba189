// Finds the action that does a given piece of work, and the neighbours of a
// stage, in constant time.
#include "ppcc/Analysis/Index/ProgramIndex.h"

using namespace ppcc;

ProgramIndex::ProgramIndex(const Program &program)
    : pairs(program.pipes()), stages(program.pipes()), ruleIndex(program) {
  std::vector<StageEnd> up, down;
  forEachEdge(program.pipes(), [&](PipeId pipe, StageId from, StageId to) {
    (from < to ? up : down).emplace_back(stages(pipe, from), to);
  });
  above.fill(std::move(up), stages.size());
  below.fill(std::move(down), stages.size());
  // A whole program has an action for each pair at least; so numbers in a short
  // text cannot ask for much memory.
  constexpr uint64_t slack = 1u << 20;
  hasSlots = pairs.size() <= program.size() + slack;
  if (hasSlots)
    addDefiners(program);
}

void ProgramIndex::EdgeTable::fill(std::vector<StageEnd> edges, size_t stages) {
  llvm::sort(edges);
  starts.resize(stages + 1);
  for (auto [stage, end] : edges) {
    ++starts[stage + 1];
    ends.push_back(end);
  }
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
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
