#include "ppcc/Analysis/RankPairs.h"

using namespace ppcc;

std::map<RankPair, ActionId> ppcc::talkingPairs(const Program &program) {
  std::map<RankPair, ActionId> firsts;
  std::vector<uint32_t> metBy(program.numRanks()); // The last, plus 1.
  for (RankId rank : program.ranks())
    for (ActionId row : program.rows(rank)) {
      Action action = program[row];
      if (!action.hasPeer())
        continue;
      RankId other = program.isFarEnd(action, rank)
                         ? program.rankOfStage(action.pipe, action.stage)
                         : program.otherEnd(action);
      if (other == rank ||
          std::exchange(metBy[other.value], rank.value + 1) == rank.value + 1)
        continue;
      auto [low, high] = std::minmax(rank, other);
      firsts.try_emplace({low, high}, row);
    }
  return firsts;
}
