#include "ppcc/IR/Rows.h"

using namespace ppcc;

RankId Rows::rankOf(ActionId id) const {
  auto after = std::upper_bound(rankStarts.begin(), rankStarts.end(), id.value);
  return RankId(after - rankStarts.begin() - 1);
}

void Rows::layout(ArrayRef<uint32_t> rowsOfRank) {
  rankStarts.assign(1, 0);
  for (uint32_t rows : rowsOfRank)
    rankStarts.push_back(rankStarts.back() + rows);
  packed.resize(rankStarts.back());
}

void Rows::renumberKinds(ArrayRef<KindId> renumbered) {
  for (Row &row : packed)
    row.kind = renumbered[row.kind].value;
}

RowRange Rows::itemOf(ActionId row) const {
  ActionId end(row.value + 1);
  while (joined(row))
    --row.value;
  while (end.value != size() && joined(end))
    ++end.value;
  return {row, end};
}
