#include "ppcc/IR/Program.h"

#include <charconv>

using namespace ppcc;

std::optional<ActionId> Program::firstMessage() const {
  for (ActionId row : rows())
    if (!kindOf(row).isCompute())
      return row;
  return std::nullopt;
}

static void appendNumber(uint32_t number, SmallVectorImpl<char> &out) {
  char digits[10];
  auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
  out.append(digits, end);
}

void ppcc::appendCell(const Program &program, const Action &action,
                      SmallVectorImpl<char> &out) {
  const KindInfo &info = program.kindOf(action);
  if (info.scope != KindScope::Rank)
    appendNumber(action.stage.value, out);
  out.append(info.mnemonic.begin(), info.mnemonic.end());
  if (action.hasMicrobatch())
    appendNumber(action.microbatch, out);
  if (!action.hasPeer())
    return;
  if (info.isCompute()) {
    out.push_back(info.collective == Collective::To ? '>' : '<');
    appendNumber(action.peer.value, out);
  } else if (action.peer.value !=
             action.stage.value + (info.goesToLaterStage() ? 1 : -1)) {
    out.push_back(info.isSend() ? '>' : '<');
    appendNumber(action.peer.value, out);
  }
}

std::string ppcc::cell(const Program &program, const Action &action) {
  SmallString<16> text;
  appendCell(program, action, text);
  return text.str().str();
}

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
