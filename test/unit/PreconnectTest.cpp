// The order in which ranks connect.
#include "ppcc/Transforms/Passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace ppcc;

namespace {

RankPair pair(uint32_t low, uint32_t high) {
  return {RankId(low), RankId(high)};
}

/// How long it takes when each meeting takes one unit and begins once both
/// ranks have ended those before it.
uint32_t rounds(uint32_t ranks, llvm::ArrayRef<RankPair> order) {
  std::vector<uint32_t> free(ranks);
  uint32_t last = 0;
  for (auto [low, high] : order) {
    uint32_t end = std::max(free[low.value], free[high.value]) + 1;
    free[low.value] = free[high.value] = end;
    last = std::max(last, end);
  }
  return last;
}

TEST(Preconnect, KeepsEachPairOnceInFewRounds) {
  std::mt19937 random(1);
  for (int i = 0; i != 500; ++i) {
    uint32_t ranks = 2 + random() % 40, dense = 1 + random() % 100;
    std::vector<RankPair> pairs;
    std::vector<uint32_t> degree(ranks);
    for (uint32_t low = 0; low != ranks; ++low)
      for (uint32_t high = low + 1; high != ranks; ++high)
        if (random() % 100 < dense) {
          pairs.push_back(pair(low, high));
          ++degree[low];
          ++degree[high];
        }
    std::vector<RankPair> order = connectionOrder(ranks, pairs);
    if (!pairs.empty()) {
      EXPECT_LE(rounds(ranks, order),
                2 * *std::max_element(degree.begin(), degree.end()) - 1);
    }
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, pairs);
  }
}

TEST(Preconnect, TakesTwoRoundsForALine) {
  std::vector<RankPair> line;
  for (uint32_t rank = 0; rank != 1000; ++rank)
    line.push_back(pair(rank, rank + 1));
  EXPECT_EQ(rounds(1001, connectionOrder(1001, line)), 2u);
}

TEST(Preconnect, LetsOneRankMeetAllInTheirOrder) {
  constexpr uint32_t ranks = 1000;
  std::vector<RankPair> star;
  for (uint32_t rank = 1; rank != ranks; ++rank)
    star.push_back(pair(0, rank));
  EXPECT_EQ(connectionOrder(ranks, star), star);
  // Those that it meets late still meet each other early.
  std::vector<RankPair> late = star;
  late.push_back(pair(ranks - 2, ranks - 1));
  std::vector<RankPair> order = connectionOrder(ranks, late);
  EXPECT_EQ(order[1], pair(ranks - 2, ranks - 1));
  order.erase(order.begin() + 1);
  EXPECT_EQ(order, star);
}

} // namespace
