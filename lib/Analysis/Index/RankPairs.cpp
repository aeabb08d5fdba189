#include "ppcc/Analysis/Index/RankPairs.h"

using namespace ppcc;

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
