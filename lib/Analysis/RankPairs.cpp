#include "ppcc/Analysis/RankPairs.h"

using namespace ppcc;

std::vector<TalkingPair> ppcc::talkingPairs(const Program &program) {
  std::vector<TalkingPair> pairs;
  std::vector<uint32_t> metBy(program.numRanks()); // The last, plus 1.
  for (RankId rank : program.ranks()) {
    ActionId end = program.end(rank);
    for (ActionId row = program.begin(rank); row != end; ++row.value) {
      Action action = program[row];
      if (!action.hasPeer())
        continue;
      RankId other = program.isFarEnd(action, rank)
                         ? program.rankOfStage(action.pipe, action.stage)
                         : program.otherEnd(action);
      uint32_t peer = other.value;
      if (peer == rank.value || metBy[peer] == rank.value + 1)
        continue;
      metBy[peer] = rank.value + 1;
      auto [low, high] = std::minmax(rank.value, peer);
      pairs.push_back({{RankId(low), RankId(high)}, row});
    }
  }
  auto key = [](const TalkingPair &pair) {
    return std::pair(pair.ranks, pair.first);
  };
  llvm::sort(pairs, [&](const TalkingPair &a, const TalkingPair &b) {
    return key(a) < key(b);
  });
  pairs.erase(std::unique(pairs.begin(), pairs.end(),
                          [](const TalkingPair &a, const TalkingPair &b) {
                            return a.ranks == b.ranks;
                          }),
              pairs.end());
  return pairs;
}
