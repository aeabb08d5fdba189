#include "ppcc/Analysis/Index/MessageIndex.h"

using namespace ppcc;

MessageIndex::MessageIndex(const Program &program, const ProgramIndex &index)
    : EdgeIndex(program, index) {
  if (!fits())
    return;
  for (auto &column : ends)
    column.assign(size(), none);
  partners.assign(program.size(), none);
  std::vector<uint32_t> done[2]; // By lane: the sends and receives so far.
  for (auto &column : done)
    column.resize(channels().size());
  std::vector<uint32_t> positions(size()); // Of the end met first, on its lane.
  size_t rows = 0;
  for (ActionId row : program.rows()) {
    if (program.kindOf(row).isCompute())
      continue;
    Action action = program[row];
    auto message = of(action);
    bool side = !sends(action);
    if (!message || ends[side][message->number] != none) {
      whole = false;
      continue;
    }
    ++rows;
    ends[side][message->number] = row.value;
    uint32_t position = done[side][message->channel]++;
    uint32_t other = ends[!side][message->number];
    if (other == none) {
      positions[message->number] = position;
      continue;
    }
    inOrder &= positions[message->number] == position;
    partners[row.value] = other;
    partners[other] = row.value;
  }
  whole &= rows == 2 * size();
}

std::vector<std::vector<ActionId>>
ppcc::receivesByChannel(const Program &program, const MessageIndex &messages) {
  std::vector<std::vector<ActionId>> receives(messages.channels().size());
  for (ActionId row : program.rows())
    if (program.kindOf(row).isRecv())
      if (auto message = messages.of(program[row]))
        receives[message->channel].push_back(row);
  return receives;
}

std::map<RankPair, ActionId> ppcc::communicatingPairs(const Program &program) {
  std::map<RankPair, ActionId> firsts;
  std::vector<uint32_t> lastSeenBy(program.numRanks()); // The last, plus 1.
  for (RankId rank : program.ranks())
    for (ActionId row : program.rows(rank)) {
      Action action = program[row];
      if (!action.hasPeer())
        continue;
      RankId other = program.isPeerSide(action, rank)
                         ? program.rankOfStage(action.pipe, action.stage)
                         : program.peerRank(action);
      if (other == rank || std::exchange(lastSeenBy[other.value],
                                         rank.value + 1) == rank.value + 1)
        continue;
      auto [low, high] = std::minmax(rank, other);
      firsts.try_emplace({low, high}, row);
    }
  return firsts;
}
