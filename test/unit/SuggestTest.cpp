// What a misspelt name was probably meant to be.
#include "ppcc/Support/Suggest.h"

#include <gtest/gtest.h>

using namespace ppcc;

TEST(Suggest, nearNames) {
  EXPECT_EQ(nearestName("repat", {"repeat", "for", "while"}), "repeat");
  EXPECT_EQ(nearestName("linaer", {"loop", "linear"}), "linear");
  EXPECT_EQ(nearestName("buffred", {"buffered"}), "buffered");
  EXPECT_EQ(nearestName("transprot", {"transport"}), "transport");
}

TEST(Suggest, caseCountsForNothing) {
  EXPECT_EQ(nearestName("GPIPE", {"gpipe", "zb1p"}), "gpipe");
  EXPECT_EQ(nearestName("f", {"B", "F"}), "F");
}

TEST(Suggest, oneLetterIsNotNearAnother) {
  EXPECT_EQ(nearestName("t", {"s", "P"}), "");
  EXPECT_EQ(nearestName("PP", {"P"}), "");
}

TEST(Suggest, farNames) {
  EXPECT_EQ(nearestName("x", {"linear", "loop"}), "");
  EXPECT_EQ(nearestName("overlap", {"pipeline", "defer"}), "");
  EXPECT_EQ(nearestName("abc", {"", "abxyz"}), "");
  EXPECT_EQ(nearestName("", {"abc"}), "");
  EXPECT_EQ(nearestName("anything", {}), "");
}

TEST(Suggest, theBeginningOfAName) {
  EXPECT_EQ(nearestName("dgx", {"a100", "dgx_a100", "dgx_h100"}), "dgx_a100");
  EXPECT_EQ(nearestName("lin", {"linear", "line"}), "line");
  EXPECT_EQ(nearestName("dg", {"dgx_h100"}), "");
}

TEST(Suggest, theFirstOfEqualsWins) {
  EXPECT_EQ(nearestName("cat", {"bat", "cut", "rat"}), "bat");
  EXPECT_EQ(nearestName("cat", {"bat", "cat"}), "cat");
}

TEST(Suggest, veryLongNamesHaveNone) {
  std::string name(100000, 'a'), near = name + "b";
  EXPECT_EQ(nearestName(name, {near}), "");
  EXPECT_EQ(nearestName("a", {name}), "");
  EXPECT_EQ(nearestName(near.substr(99850), {name.substr(99850)}),
            name.substr(99850));
  // The longest has 200 letters.
  llvm::StringRef longest = llvm::StringRef(name).take_front(200);
  EXPECT_EQ(nearestName(longest, {longest}), longest);
  EXPECT_EQ(nearestName(llvm::StringRef(name).take_front(201), {longest}), "");
}

TEST(Suggest, manyCandidatesTakeNoLongerThanSome) {
  std::string name(100, 'a');
  std::vector<std::string> names(100'000, std::string(100, 'b'));
  std::vector<llvm::StringRef> candidates(names.begin(), names.end());
  candidates[10] = name;
  EXPECT_EQ(nearestName(name, candidates), name);
  std::swap(candidates[10], candidates.back());
  EXPECT_EQ(nearestName(name, candidates), "");
}

TEST(Suggest, theEndOfAMessage) {
  EXPECT_EQ(std::string(didYouMean("liner", {"linear"})),
            "; did you mean `linear`?");
  EXPECT_EQ(std::string(didYouMean("x", {"linear"})), "");
  auto list = [] { return std::vector<llvm::StringRef>{"linear"}; };
  EXPECT_EQ(fmt::format("{}", didYouMean("liner", list)),
            "; did you mean `linear`?");
}

TEST(Suggest, longListsAreCut) {
  EXPECT_EQ(listed({"a", "b"}), "a, b");
  std::vector<llvm::StringRef> names(42, "x");
  EXPECT_TRUE(llvm::StringRef(listed(names)).ends_with("x, x and 2 more"));
}
