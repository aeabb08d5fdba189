#include "ppcc/Analysis/EventGraph.h"

#include "ppcc/Analysis/WaitCycle.h"

using namespace ppcc;

/// Finds the unit of each row, and the row before it in its queue where that is
/// of another unit.
void EventGraph::linkUnits() {
  units.resize(program.size(), none);
  previous.resize(program.size(), none);
  std::vector<uint32_t> last(
      around.inLine ? program.ranksBegun() : numbers.size(), none);
  for (RankId rank : program.ranks())
    for (ActionId row : program.rows(rank)) {
      ActionId first = groups[row].from;
      while (!isMember(row, first))
        ++first.value;
      units[row.value] = first.value;
      if (!isInQueues(row))
        continue;
      uint32_t &before = last[queueOf(row, rank)];
      if (before != none && units[before] != first.value)
        previous[row.value] = before;
      before = row.value;
    }
}

/// What a row waits for that has started.
std::optional<Need> EventGraph::unmetEnd(ActionId row) const {
  if (isCompute(row)) {
    auto meeting = index.rules().meetingOf(row);
    for (ActionId member :
         meeting ? index.rules().members(*meeting) : ArrayRef<ActionId>())
      if (state(member) < Started)
        return Need{NeedKind::Start, member};
    return std::nullopt;
  }
  auto need = endNeed(row, *endsOf(row));
  return need && !met(*need) ? need : std::nullopt;
}

std::vector<EventGraph::Block> EventGraph::blocks() {
  linkUnits();
  std::vector<uint32_t> headOf(program.size(), none);
  std::vector<Block> found;
  std::vector<uint32_t> heads;
  for (ActionId row : program.rows()) {
    uint32_t unit = units[row.value], before = previous[unit];
    if (state(row) == Ended || !isInQueues(row))
      continue;
    if (state(ActionId(unit)) != Waiting || before == none ||
        state(ActionId(before)) == Ended)
      headOf[row.value] = unit;
    else
      headOf[row.value] = headOf[before];
    if (row.value == unit && headOf[row.value] == unit)
      heads.push_back(unit);
  }
  for (uint32_t unit : heads)
    for (ActionId row(unit), end = groups[row].to; row != end; ++row.value) {
      if (units[row.value] != unit)
        continue;
      auto add = [&](Need need, Time = 0) {
        if (!met(need))
          found.push_back({unit, row, need, headOf[need.row.value]});
        return true;
      };
      if (state(row) == Started)
        if (auto need = unmetEnd(row))
          add(*need);
      uint32_t first = 0;
      if (state(row) == Waiting)
        forEachNeed(row, before(row, unit), first, clock, add);
    }
  return found;
}

std::vector<EventGraph::Block> EventGraph::shortestCircle() {
  std::vector<Block> all = blocks(), circle;
  std::vector<Wait> waits;
  waits.reserve(all.size());
  for (const Block &block : all)
    waits.push_back({block.unit, block.on});
  for (uint32_t wait : ppcc::shortestCircle(waits))
    circle.push_back(all[wait]);
  return circle;
}
