#include "ppcc/Analysis/Run/EventGraph.h"

using namespace ppcc;

/// Finds the row before each in its queue where that is of another unit.
void EventGraph::linkRows() {
  previous.resize(program.size(), none);
  std::vector<uint32_t> last(
      model.inProgramOrder ? program.ranksBegun() : numbers.size(), none);
  for (RankId rank : program.ranks())
    for (ActionId row : program.rows(rank)) {
      if (!isInQueues(row))
        continue;
      uint32_t before = std::exchange(last[queueOf(row, rank)], row.value);
      if (before != none && unitOf(ActionId(before)) != unitOf(row))
        previous[row.value] = before;
    }
}

/// Calls `visit(need)` for what a row waits for that has started.
template <class Visit>
void EventGraph::forEachEndNeed(ActionId row, Visit visit) const {
  if (!isCompute(row)) {
    if (auto need = endNeed(row, *endsOf(row)))
      visit(*need);
  } else if (auto collective = index.rules().collectiveOf(row)) {
    for (ActionId member : index.rules().members(*collective))
      visit(Need{NeedKind::Start, member});
  }
}

std::vector<EventGraph::BlockedAction> EventGraph::blocks() {
  linkRows();
  std::vector<uint32_t> headOf(program.size(), none);
  std::vector<BlockedAction> found;
  for (ActionId row : program.rows()) {
    uint32_t unit = unitOf(row), before = previous[unit];
    if (state(row) == Ended || !isInQueues(row))
      continue;
    if (state(ActionId(unit)) != Waiting || before == none ||
        state(ActionId(before)) == Ended)
      headOf[row.value] = unit;
    else
      headOf[row.value] = headOf[before];
  }
  for (ActionId row : program.rows()) {
    uint32_t unit = unitOf(row), first = 0;
    if (headOf[unit] != unit)
      continue;
    auto add = [&](Need need, Time = 0) {
      if (!met(need))
        found.push_back({unit, row, need, headOf[need.row.value]});
      return true;
    };
    if (state(row) == Started)
      forEachEndNeed(row, add);
    if (state(row) == Waiting)
      forEachNeed(row, before(row, unit), first, clock, add);
  }
  // The units of a group may take turns in it.
  llvm::stable_sort(found, [](const BlockedAction &a, const BlockedAction &b) {
    return a.unit < b.unit;
  });
  return found;
}

std::vector<EventGraph::BlockedAction> EventGraph::shortestCycle() {
  std::vector<BlockedAction> all = blocks(), cycle;
  std::vector<Wait> waits;
  waits.reserve(all.size());
  for (const BlockedAction &block : all)
    waits.push_back({block.unit, block.on});
  for (uint32_t wait : ppcc::shortestCycle(waits))
    cycle.push_back(all[wait]);
  return cycle;
}
