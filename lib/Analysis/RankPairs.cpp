#include "ppcc/Analysis/RankPairs.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace ppcc;

std::vector<TalkingPair> ppcc::talkingPairs(const Program &program) {
  std::vector<TalkingPair> pairs;
  std::vector<uint32_t> metBy(program.numRanks()); // The last, plus 1.
  for (uint32_t rank = 0; rank != program.ranksBegun(); ++rank) {
    ActionId end = program.end(RankId(rank));
    for (ActionId row = program.begin(RankId(rank)); row != end; ++row.value) {
      if (program.kindOf(row).isCompute())
        continue;
      Action action = program[row];
      if (!action.hasPeer())
        continue;
      uint32_t peer = program.rankOfStage(action.pipe, action.peer).value;
      if (peer == rank || metBy[peer] == rank + 1)
        continue;
      metBy[peer] = rank + 1;
      auto [low, high] = std::minmax(rank, peer);
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
