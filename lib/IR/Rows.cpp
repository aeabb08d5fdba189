#include "ppcc/IR/Rows.h"

using namespace ppcc;

RankId Rows::rankOf(ActionId id) const {
  auto after = std::upper_bound(rankStarts.begin(), rankStarts.end(), id.value);
  return RankId(after - rankStarts.begin() - 1);
}

void Rows::reserve(size_t rows) {
  kindColumn.reserve(rows);
  pipeColumn.reserve(rows);
  stageColumn.reserve(rows);
  microbatchColumn.reserve(rows);
  peerColumn.reserve(rows);
  phaseColumn.reserve(rows);
  siteColumn.reserve(rows);
}

void Rows::layout(ArrayRef<uint32_t> rowsOfRank) {
  rankStarts.assign(1, 0);
  for (uint32_t rows : rowsOfRank)
    rankStarts.push_back(rankStarts.back() + rows);
  size_t rows = rankStarts.back();
  kindColumn.resize(rows);
  pipeColumn.resize(rows);
  stageColumn.resize(rows);
  microbatchColumn.resize(rows);
  peerColumn.resize(rows);
  phaseColumn.resize(rows);
  siteColumn.resize(rows);
}

void Rows::set(ActionId id, const Action &action) {
  size_t i = id.value;
  kindColumn[i] = uint8_t(action.kind.value);
  pipeColumn[i] = uint8_t(action.pipe.value);
  stageColumn[i] = uint16_t(action.stage.value);
  microbatchColumn[i] = action.microbatch;
  peerColumn[i] = uint16_t(action.peer.value);
  phaseColumn[i] =
      uint16_t(action.phase.value | (action.joined ? joinedBit : 0));
  siteColumn[i] = action.site.value;
}

void Rows::renumberKinds(ArrayRef<KindId> renumbered) {
  for (uint8_t &kind : kindColumn)
    kind = uint8_t(renumbered[kind].value);
}

RowRange Rows::itemOf(ActionId row) const {
  ActionId end(row.value + 1);
  while (joined(row))
    --row.value;
  while (end.value != size() && joined(end))
    ++end.value;
  return {row, end};
}
