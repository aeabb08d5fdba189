// Checked arithmetic agrees with arithmetic in 128 bits.
#include "ppcc/Support/CheckedInt.h"

#include <gtest/gtest.h>

using namespace ppcc;

using Wide = __int128;
constexpr int64_t most = std::numeric_limits<int64_t>::max();
constexpr int64_t least = std::numeric_limits<int64_t>::min();
constexpr int64_t values[] = {
    least, least + 1, least / 2, -4294967296, -8,       -7,       -2,  -1, 0, 1,
    2,     3,         7,         4294967296,  most / 2, most - 1, most};

static std::optional<int64_t> narrow(Wide value) {
  if (value < least || value > most)
    return std::nullopt;
  return static_cast<int64_t>(value);
}

/// The largest integer that is not above a / b.
static Wide wideFloor(Wide a, Wide b) {
  Wide quotient = a / b;
  while (b > 0 ? quotient * b > a : quotient * b < a)
    --quotient;
  return quotient;
}

TEST(CheckedInt, agreesWithWiderIntegers) {
  for (int64_t a : values)
    for (int64_t b : values) {
      EXPECT_EQ(checkedAdd(a, b), narrow(Wide(a) + b)) << a << " + " << b;
      EXPECT_EQ(checkedSub(a, b), narrow(Wide(a) - b)) << a << " - " << b;
      EXPECT_EQ(checkedMul(a, b), narrow(Wide(a) * b)) << a << " * " << b;
      if (b == 0) {
        EXPECT_EQ(floorDiv(a, b), std::nullopt);
        EXPECT_EQ(floorMod(a, b), std::nullopt);
        continue;
      }
      EXPECT_EQ(floorDiv(a, b), narrow(wideFloor(a, b))) << a << " / " << b;
      EXPECT_EQ(floorMod(a, b), narrow(a - b * wideFloor(a, b)))
          << a << " % " << b;
    }
}

TEST(CheckedInt, divisionFloors) {
  EXPECT_EQ(floorDiv(7, 2), 3);
  EXPECT_EQ(floorDiv(-7, 2), -4);
  EXPECT_EQ(floorDiv(7, -2), -4);
  EXPECT_EQ(floorDiv(-7, -2), 3);
  EXPECT_EQ(floorMod(-1, 4), 3);
  EXPECT_EQ(floorMod(1, -4), -3);
  EXPECT_EQ(floorMod(-8, 4), 0);
  EXPECT_EQ(floorMod(least, -1), 0);
  EXPECT_EQ(floorDiv(least, -1), std::nullopt);
  EXPECT_EQ(floorDiv(least, 1), least);
}
