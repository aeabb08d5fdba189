#include "ppcc/Analysis/Turns.h"

using namespace ppcc;

Turns::Turns(const Program &program, const ProgramIndex &index,
             std::vector<std::vector<TorchStep>> steps)
    : program(program), index(index), steps(std::move(steps)),
      heads(program.ranksBegun()), ready(program.ranksBegun()) {
  assert(index.fits());
  size_t pairs = 0;
  for (const Pipe &pipe : program.pipes()) {
    firstPair.push_back(pairs);
    pairs += size_t(pipe.numStages()) * pipe.numMicrobatches;
  }
  made.resize(pairs);
}

std::optional<Turns::Stuck> Turns::firstStuck() const {
  for (RankId rank : program.ranks())
    if (!atEnd(rank))
      return Stuck{rank, ActionId(heads[rank.value].member),
                   heads[rank.value].waitsFor};
  return std::nullopt;
}

/// The input with this number that an action reads from other stages, or
/// nothing beyond the last.
std::optional<StageResult> Turns::inputOf(const Action &action,
                                          uint32_t number) const {
  std::optional<StageResult> found;
  forEachSlot(program.kindOf(action).defines, [&](uint8_t slotBit) {
    auto sources = index.sourcesOf(action.pipe, action.stage, slotBit);
    if (!found && number < sources.size())
      found =
          StageResult{action.pipe, sources[number], action.microbatch, slotBit};
    number -= sources.size();
  });
  return found;
}

/// Whether all inputs of the head of `rank` have come; else Head::waitsFor is
/// the first that has not.
bool Turns::headIsReady(RankId rank) {
  Head &head = heads[rank.value];
  uint32_t end = program.groupEnd(ActionId(head.begin), rank).value;
  for (; head.member != end; ++head.member, head.input = 0) {
    Action action = program[ActionId(head.member)];
    while (auto input = inputOf(action, head.input)) {
      if (!has(*input)) {
        head.waitsFor = *input;
        return false;
      }
      ++head.input;
    }
  }
  return true;
}

void Turns::start(RankId rank) { advance(rank, program.begin(rank)); }

/// Looks at a new head: the next compute item.
void Turns::advance(RankId rank, ActionId end) {
  uint32_t row = end.value;
  while (row != program.end(rank).value &&
         !program.kindOf(ActionId(row)).isCompute())
    ++row;
  Head &head = heads[rank.value];
  head = {row, row, 0, {}, head.step};
  wake(rank);
}
