#include "ppcc/Analysis/Run/Inboxes.h"

using namespace ppcc;

Inboxes::Inboxes(const Program &program, const ProgramIndex &index, Joins joins)
    : program(program), index(index), joins(joins), pairs(program.pipes()),
      inputs(pairs.size() * 2), heads(program.ranksBegun()) {
  for (uint32_t collective = 0; collective != index.rules().numCollectives();
       ++collective)
    awaited.push_back(index.rules().members(collective).size());
  for (RankId rank : program.ranks())
    set(rank, program.begin(rank));
}

void Inboxes::set(RankId rank, ActionId begin) {
  ActionId end = program.end(rank);
  while (begin != end && !program.kindOf(begin).isCompute())
    ++begin.value;
  ActionId itemEnd = begin == end ? end : program.groupEnd(begin, rank);
  Head &head = heads[rank.value] = {begin, itemEnd, begin};
  if (auto collective = begin == end ? std::nullopt : collectiveOf(begin);
      collective && awaited[*collective] != 0)
    head.waits = --awaited[*collective] != 0;
}

void Inboxes::advance(RankId rank) { set(rank, end(rank)); }

bool Inboxes::misses(const Action &action, uint8_t slotBit,
                     size_t input) const {
  // WeightGrad has no inputs, and the number of another's.
  size_t sources = index.sourcesOf(action.pipe, action.stage, slotBit).size();
  return inputs[input].arrived < sources;
}

bool Inboxes::isReady(RankId rank) {
  Head &head = heads[rank.value];
  head.missing = none;
  for (; head.member != head.end; ++head.member.value) {
    Action action = program[head.member];
    const KindInfo &info = program.kindOf(action);
    Time last = 0;
    for (uint8_t slotBit : slotsIn(info.isCompute() ? info.defines : 0)) {
      size_t input =
          inputOf(action.pipe, action.stage, action.microbatch, slotBit);
      if (misses(action, slotBit, input)) {
        head.missing = input;
        return false;
      }
      last = std::max(last, inputs[input].last);
    }
    head.ready = std::max(head.ready, last);
  }
  return head.begin != head.end && !head.waits;
}

SmallVector<RankId, 2> Inboxes::together(RankId rank) const {
  auto collective = collectiveOf(begin(rank));
  if (!collective)
    return {rank};
  SmallVector<RankId, 2> ranks;
  for (ActionId row : index.rules().members(*collective))
    if (RankId other = program.rankOf(row); begin(other) == row)
      ranks.push_back(other);
  return ranks;
}

std::optional<RankId> Inboxes::release() {
  for (auto [rank, head] : llvm::enumerate(heads))
    if (head.waits) {
      head.waits = false;
      awaited[*collectiveOf(head.begin)] = 0;
      return RankId(rank);
    }
  return std::nullopt;
}

Inboxes::Blocked Inboxes::blocked(RankId rank) const {
  ActionId row = heads[rank.value].member;
  Action action = program[row];
  for (uint8_t slotBit : slotsIn(program.kindOf(action).defines))
    if (misses(action, slotBit,
               inputOf(action.pipe, action.stage, action.microbatch, slotBit)))
      for (StageId source : index.sourcesOf(action.pipe, action.stage, slotBit))
        if (!hasRun(action.pipe, source, action.microbatch, slotBit))
          return {row, slotBit, source};
  return {row};
}
