// Runs the compute actions of all ranks side by side, in any order that the
// data allows.
#include "ppcc/Analysis/Inboxes.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;

Inboxes::Inboxes(const Program &program, const ProgramIndex &index)
    : program(program), index(index), heads(program.ranksBegun()) {
  for (const Pipe &pipe : program.pipes()) {
    firstPair.push_back(numPairs);
    numPairs += size_t(pipe.numStages()) * pipe.numMicrobatches;
  }
  lasts.assign(numPairs * 2, -1);
  if (llvm::any_of(program.pipes(),
                   [](const Pipe &pipe) { return !pipe.skipEdges.empty(); }))
    come.resize(lasts.size());
  for (RankId rank : program.ranks())
    set(rank, program.begin(rank));
}

void Inboxes::set(RankId rank, ActionId begin) {
  ActionId end = program.end(rank);
  while (begin != end && !program.kindOf(begin).isCompute())
    ++begin.value;
  ActionId itemEnd = begin == end ? end : program.groupEnd(begin, rank);
  heads[rank.value] = {begin, itemEnd, begin, 0};
}

void Inboxes::advance(RankId rank) { set(rank, end(rank)); }

bool Inboxes::misses(const Action &action, uint8_t slotBit) const {
  size_t sources = index.sourcesOf(action.pipe, action.stage, slotBit).size();
  if (sources == 0)
    return false;
  size_t input = inputOf(action.pipe, action.stage, action.microbatch, slotBit);
  return come.empty() ? lasts[input] < 0 : come[input] < sources;
}

std::optional<Time> Inboxes::ready(RankId rank) {
  Head &head = heads[rank.value];
  if (head.begin == head.end)
    return std::nullopt;
  for (; head.member != head.end; ++head.member.value) {
    Action action = program[head.member];
    const KindInfo &info = program.kindOf(action);
    Time last = 0;
    for (uint8_t slotBit : slotsIn(info.isCompute() ? info.defines : 0)) {
      if (misses(action, slotBit))
        return std::nullopt;
      last = std::max(last, lasts[inputOf(action.pipe, action.stage,
                                          action.microbatch, slotBit)]);
    }
    head.ready = std::max(head.ready, last);
  }
  return head.ready;
}

std::pair<ActionId, uint8_t> Inboxes::blocked(RankId rank) const {
  ActionId row = heads[rank.value].member;
  Action action = program[row];
  uint8_t slots = program.kindOf(action).defines;
  while (slots && !misses(action, slots & -slots))
    slots &= slots - 1;
  return {row, static_cast<uint8_t>(slots & -slots)};
}
