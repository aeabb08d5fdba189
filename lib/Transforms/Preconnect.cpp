// Lists the ranks that exchange messages in an order in which all can connect.
#include "ppcc/Transforms/Passes.h"

#include "ppcc/Analysis/Index/MessageIndex.h"

using namespace ppcc;

namespace {

/// The rounds in which a rank meets somebody, as bits.
class Rounds {
public:
  /// The first in which both ranks are free.
  static uint32_t firstFree(const Rounds &a, const Rounds &b) {
    for (size_t i = std::max(a.full, b.full);; ++i)
      if (uint64_t taken = a.word(i) | b.word(i); ~taken)
        return i * 64 + std::countr_one(taken);
  }

  void take(uint32_t round) {
    size_t i = round / 64;
    if (words.empty())
      first = i; // Who meets one rank late has no words for the time before.
    if (i < first) {
      words.insert(words.begin(), first - i, 0);
      first = i;
    }
    if (i - first >= words.size())
      words.resize(i - first + 1);
    words[i - first] |= uint64_t(1) << round % 64;
    while (!~word(full))
      ++full;
  }

private:
  uint64_t word(size_t i) const {
    return i >= first && i - first < words.size() ? words[i - first] : 0;
  }

  std::vector<uint64_t> words;
  size_t first = 0; ///< The words before it are empty.
  size_t full = 0;  ///< The words before it have no free round.
};

} // namespace

std::vector<RankPair> ppcc::connectionOrder(uint32_t numRanks,
                                            ArrayRef<RankPair> pairs) {
  std::vector<Rounds> taken(numRanks);
  std::vector<std::pair<uint32_t, RankPair>> order;
  order.reserve(pairs.size());
  for (RankPair pair : pairs) {
    Rounds &low = taken[pair.low.value], &high = taken[pair.high.value];
    uint32_t round = Rounds::firstFree(low, high);
    low.take(round);
    high.take(round);
    order.push_back({round, pair});
  }
  llvm::sort(order);
  auto inOrder = llvm::make_second_range(order);
  return {inOrder.begin(), inOrder.end()};
}

PassResult ppcc::preconnect(Program &program, PassContext &) {
  std::vector<RankPair> pairs;
  for (auto [ranks, first] : communicatingPairs(program))
    pairs.push_back(ranks);
  pairs = connectionOrder(program.numRanks(), pairs);
  if (pairs == program.preconnect())
    return PassResult::Unchanged;
  program.setFacts({program.provenUnder(), std::move(pairs)});
  return PassResult::Changed;
}
