// Tells the names of calls.
#include "ppcc/IR/Calls.h"

using namespace ppcc;

static constexpr StringRef styleNames[] = {"none", "exchange", "ring"};

ArrayRef<StringRef> ppcc::callStyleNames() { return styleNames; }

std::optional<CallStyle> ppcc::findCallStyle(StringRef name) {
  return findEnum<CallStyle>(styleNames, name);
}

static Step itemAt(const Program &program, RankId rank, ActionId row) {
  Step step{row, program.groupEnd(row, rank)};
  for (ActionId member : RowRange{row, step.end})
    if (const KindInfo &info = program.kindOf(member); info.isCompute())
      step.slots |= info.defines & slot::crossStage;
  return step;
}

Step ppcc::stepAt(const Program &program, RankId rank, ActionId row,
                  CallStyle style) {
  Step step = itemAt(program, rank, row);
  if (style != CallStyle::Ring || step.slots != slot::Output)
    return step;
  // What is declared to happen between the two, such as to compute the forward
  // again, parts them no more than the backward itself.
  ActionId nextRow = step.end;
  while (nextRow != program.end(rank) && program.kindOf(nextRow).isDeclared())
    ++nextRow.value;
  if (nextRow == program.end(rank))
    return step;
  Step next = itemAt(program, rank, nextRow);
  if (next.slots == slot::InputGrad &&
      program[row].phase == program[next.begin].phase)
    return {row, next.end, slot::crossStage};
  return step;
}

// What a call holds, as bits.
enum : unsigned { SendF = 1, SendB = 2, RecvF = 4, RecvB = 8 };
static constexpr unsigned sends = SendF | SendB, receives = RecvF | RecvB;

/// By contents; empty for what Megatron-LM has no function for.
static constexpr StringRef callNames[] = {
    "",
    "send_forward",
    "send_backward",
    "",
    "recv_forward",
    "send_forward_recv_forward",
    "send_backward_recv_forward",
    "",
    "recv_backward",
    "send_forward_recv_backward",
    "send_backward_recv_backward",
    "",
    "",
    "",
    "",
    "send_forward_backward_recv_forward_backward",
};

uint8_t CallNames::slotsBefore(ActionId row) {
  while (nextRow < row) {
    Step step = stepAt(program, rank, nextRow, style);
    if (step.slots)
      lastSlots = step.slots;
    nextRow = step.end;
  }
  return lastSlots;
}

uint8_t CallNames::slotsFrom(ActionId row) {
  // What was seen last may still lie after `row`.
  if (nextSlots && row < lookaheadRow)
    return nextSlots;
  lookaheadRow = std::max(lookaheadRow, row);
  nextSlots = 0;
  while (!nextSlots && lookaheadRow != program.end(rank)) {
    Step step = stepAt(program, rank, lookaheadRow, style);
    nextSlots = step.slots;
    lookaheadRow = step.end;
  }
  return nextSlots;
}

/// What the function may post that is called between two steps.
unsigned CallNames::ringCall(uint8_t before, uint8_t after,
                             unsigned contents) const {
  unsigned single = contents & sends ? 0 : contents;
  if (before == 0)
    return single;
  if (before == slot::crossStage || after == slot::crossStage)
    return sends | receives;
  if (after != 0 && after != before && single)
    return single;
  return before == slot::Output ? SendF | RecvF : SendB | RecvB;
}

StringRef CallNames::of(ActionId begin, ActionId end) {
  bool isSingle = end.value - begin.value == 1;
  if (isSingle && style == CallStyle::None)
    return "";
  unsigned contents = 0;
  bool isPlain = true;
  for (ActionId row : RowRange{begin, end}) {
    const KindInfo &info = program.kindOf(row);
    if (info.isCompute())
      return "";
    unsigned bit = info.mainSlot() == slot::Output ? SendF : SendB;
    if (info.isRecv())
      bit *= RecvF / SendF;
    isPlain &= !(contents & bit);
    contents |= bit;
  }
  unsigned call = contents;
  if (style == CallStyle::Ring)
    call = ringCall(slotsBefore(begin), slotsFrom(end), contents);
  // A call has one message of each sort.
  bool fits = isPlain && (contents & ~call) == 0 && !callNames[call].empty();
  return fits ? callNames[call] : "batch";
}
