#include "AffineDomain.h"

#include "ppcc/Support/CheckedInt.h"

using namespace ppcc;
using namespace ppcc::family;

/// Larger ones are not calculated with: products of two of them fit 128 bits,
/// and sums of many 64.
static constexpr int64_t largest = int64_t(1) << 50;

/// What has not settled after so many iterations does not, or too late: numbers
/// below are looked at one by one.
static constexpr int64_t maxPrologue = 1000;

Affine AffineDomain::checked(Affine x, SourceRange place) {
  for (int64_t part : {x.c, x.n, x.j})
    if (part > largest || part < -largest)
      stop(Outcome::Kind::Undecided, place, "numbers become too large");
  return x;
}

AffineDomain::Bounds AffineDomain::bounds(Affine x) const {
  Bounds result{x.c, x.c};
  auto add = [&](__int128 slope) { // Along n from (0, 0) on.
    if (last == proof::unbounded) {
      if (slope > 0)
        result.max.reset();
      if (slope < 0)
        result.min.reset();
      return;
    }
    __int128 value = x.c + slope * last;
    if (result.max)
      result.max = std::max(*result.max, value);
    if (result.min)
      result.min = std::min(*result.min, value);
  };
  add(x.n);
  if (inLoop)
    add(__int128(x.n) + x.j);
  return result;
}

/// Divides the work where x changes what it answers: with `root`, the first n
/// or iteration that has another answer; a point has one for itself.
void AffineDomain::split(Affine x, __int128 root, bool isPoint,
                         SourceRange place) const {
  if (x.j == 0)
    stop(Outcome::Kind::CaseSplit, place,
         "it depends on the parameter of `--for`", std::max<int64_t>(root, 1));
  bool fromBegin = x.n == 0, fromEnd = x.n == -x.j;
  if (!fromBegin && !fromEnd)
    stop(Outcome::Kind::Undecided, place,
         "the answer changes in the middle of a loop");
  if ((root + 1) * steadyLoop.unrollFactor > maxPeeled)
    stop(Outcome::Kind::Undecided, place,
         "a condition changes after many iterations of a loop");
  int64_t more =
      (static_cast<int64_t>(root) + isPoint) * steadyLoop.unrollFactor;
  Outcome outcome =
      peeledOutcome(steadyLoop, fromBegin ? more : 0, fromBegin ? 0 : more,
                    place, "it depends on the iteration of a loop");
  if (root > 0)
    outcome.kind = Outcome::Kind::CaseSplit;
  outcome.value = static_cast<int64_t>(root);
  throw Stop{std::move(outcome)};
}

Outcome AffineDomain::peeledOutcome(const SteadyLoop &of, int64_t before,
                                    int64_t after, SourceRange place,
                                    std::string why) const {
  if (of.unrollFactor > maxPeeled ||
      of.peeled.before + of.peeled.after > 2 * maxPeeled)
    return {Outcome::Kind::Undecided, 0, {}, place, std::move(why), {}};
  Outcome outcome{Outcome::Kind::Retry, 0, *hints, place, std::move(why), {}};
  PeelCounts &hint = outcome.hints[of.loop];
  if (before != 0)
    hint.before = of.peeled.before + before;
  if (after != 0)
    hint.after = of.peeled.after + after;
  return outcome;
}

void AffineDomain::peelPrologue(SourceRange place, std::string why) const {
  if (steadyLoop.peeled.before > maxPrologue)
    stop(Outcome::Kind::Undecided, place, std::move(why));
  Outcome outcome{Outcome::Kind::Retry, 0, *hints, place, std::move(why), {}};
  outcome.hints[steadyLoop.loop] = {2 * steadyLoop.peeled.before + 2,
                                    steadyLoop.peeled.after};
  throw Stop{std::move(outcome)};
}

bool AffineDomain::isNonNegative(Affine x, SourceRange place) const {
  if (x.isConstant())
    return x.c >= 0;
  Bounds range = bounds(x);
  if (range.min && *range.min >= 0)
    return true;
  if (range.max && *range.max < 0)
    return false;
  // In terms of t = n, j or n - j, whose answers differ from t = 0 on.
  int64_t slope = x.j == 0 ? x.n : x.n == 0 ? x.j : -x.j;
  // The first t with c + slope t of the other sign.
  __int128 root = x.c >= 0 ? *floorDiv(x.c, -slope) + 1
                           : -*floorDiv(x.c, slope); // ceil(-c / slope)
  split(x, slope == 0 ? 0 : root, false, place);
}

bool AffineDomain::isZero(Affine x, SourceRange place) const {
  if (x.isConstant())
    return x.c == 0;
  Bounds range = bounds(x);
  if ((range.min && *range.min > 0) || (range.max && *range.max < 0))
    return false;
  int64_t common = std::gcd(x.n, inLoop ? x.j : 0);
  if (common == 0 || x.c % common != 0)
    return false;
  int64_t slope = x.j == 0 ? x.n : x.n == 0 ? x.j : -x.j;
  if (x.j != 0 && x.n != 0 && x.n != -x.j)
    split(x, 0, true, place);
  int64_t root = -x.c / slope;
  split(x, root, true, place);
}

Affine AffineDomain::product(Affine a, Affine b, SourceRange place) const {
  if (!a.isConstant())
    std::swap(a, b);
  if (!a.isConstant())
    stop(Outcome::Kind::Undecided, place,
         "two numbers that grow with the microbatches are multiplied");
  __int128 largestCoefficient = 0;
  for (int64_t part : {b.c, b.n, b.j})
    largestCoefficient =
        std::max<__int128>(largestCoefficient, part < 0 ? -part : part);
  if (largestCoefficient * (a.c < 0 ? -a.c : a.c) > largest)
    stop(Outcome::Kind::Undecided, place, "numbers become too large");
  return a.c * b;
}

/// The quotient that a / b has for all n and iterations.
std::optional<int64_t> AffineDomain::commonQuotient(Affine a, int64_t b) const {
  Bounds range = bounds(a);
  if (!range.min || !range.max || *range.min < -INT64_MAX ||
      *range.max > INT64_MAX)
    return std::nullopt;
  auto low = floorDiv(static_cast<int64_t>(*range.min), b),
       high = floorDiv(static_cast<int64_t>(*range.max), b);
  return low && low == high ? low : std::nullopt;
}

Affine AffineDomain::quotient(Affine a, Affine b, SourceRange place) const {
  if (b.isConstant() && b.c != 0 &&
      (a.isConstant() || (a.n % b.c == 0 && a.j % b.c == 0)))
    return {*floorDiv(a.c, b.c), a.n / b.c, a.j / b.c};
  if (!b.isConstant()) {
    // Small by large, and equals, are simple.
    if (!isNonNegative(b - 1, place))
      stop(Outcome::Kind::Undecided, place, "it divides by a value that grows");
    for (int64_t q = 0; q != 4; ++q) {
      Affine rest = a - q * b;
      if (!isNonNegative(rest, place))
        break;
      if (!isNonNegative(rest - b, place))
        return q;
    }
    stop(Outcome::Kind::Undecided, place,
         "it divides by a number that grows with the microbatches");
  }
  if (b.c == 0)
    stop(Outcome::Kind::Invalid, place, "it divides by zero");
  if (auto common = commonQuotient(a, b.c))
    return *common;
  int64_t divisor = std::abs(b.c);
  stop(Outcome::Kind::ResidueSplit, place, "it depends on a remainder",
       divisor / std::gcd(divisor, std::gcd(a.n, a.j)));
}

Affine AffineDomain::remainder(Affine a, Affine b, SourceRange place) const {
  return a - product(b, quotient(a, b, place), place);
}

int64_t AffineDomain::constant(Affine x, SourceRange place,
                               StringRef what) const {
  if (!x.isConstant())
    stop(Outcome::Kind::Undecided, place,
         what.str() + " changes from iteration to iteration");
  return x.c;
}
