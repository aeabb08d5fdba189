#include "Number.h"

#include "ppcc/Support/CheckedInt.h"

using namespace ppcc;
using namespace ppcc::family;

/// Larger ones are not calculated with: products of two of them fit 128 bits,
/// and sums of many 64.
static constexpr int64_t largest = int64_t(1) << 50;

/// What has not settled after so many turns does not, or too late: numbers
/// below are looked at one by one.
static constexpr int64_t mostDeepened = 1000;

Affine Numbers::checked(Affine x, SourceRange place) {
  for (int64_t part : {x.c, x.n, x.j})
    if (part > largest || part < -largest)
      stop(Outcome::Kind::Undecided, place, "numbers become too large");
  return x;
}

Numbers::Bounds Numbers::bounds(Affine x) const {
  Bounds result{x.c, x.c};
  auto add = [&](__int128 slope) { // Along n from (0, 0) on.
    if (last == proof::endless) {
      if (slope > 0)
        result.most.reset();
      if (slope < 0)
        result.least.reset();
      return;
    }
    __int128 value = x.c + slope * last;
    if (result.most)
      result.most = std::max(*result.most, value);
    if (result.least)
      result.least = std::min(*result.least, value);
  };
  add(x.n);
  if (inWindow)
    add(__int128(x.n) + x.j);
  return result;
}

/// Divides the work where x changes what it answers: with `root`, the first n
/// or turn that has another answer; a point has one for itself.
void Numbers::split(Affine x, __int128 root, bool isPoint,
                    SourceRange place) const {
  if (x.j == 0)
    stop(Outcome::Kind::Cut, place, "it depends on the number of microbatches",
         std::max<int64_t>(root, 1));
  bool fromBegin = x.n == 0, fromEnd = x.n == -x.j;
  if (!fromBegin && !fromEnd)
    stop(Outcome::Kind::Undecided, place,
         "the answer changes in the middle of a loop");
  if ((root + 1) * turns.perTurn > mostUnrolled)
    stop(Outcome::Kind::Undecided, place,
         "the answer changes at a far turn of a loop");
  int64_t more = (static_cast<int64_t>(root) + isPoint) * turns.perTurn;
  Outcome outcome = unrolled(turns, fromBegin ? more : 0, fromBegin ? 0 : more,
                             place, "it depends on the turn of a loop");
  if (root > 0)
    outcome.kind = Outcome::Kind::Cut;
  outcome.value = static_cast<int64_t>(root);
  throw Stop{std::move(outcome)};
}

Outcome Numbers::unrolled(const Turns &of, int64_t before, int64_t behind,
                          SourceRange place, std::string why) const {
  if (of.perTurn > mostUnrolled ||
      of.margins.before + of.margins.behind > 2 * mostUnrolled)
    return {Outcome::Kind::Undecided, 0, {}, place, std::move(why), {}};
  Outcome outcome{Outcome::Kind::Again, 0, *hints, place, std::move(why), {}};
  Margins &hint = outcome.hints[of.loop];
  if (before != 0)
    hint.before = of.margins.before + before;
  if (behind != 0)
    hint.behind = of.margins.behind + behind;
  return outcome;
}

void Numbers::deepen(SourceRange place, std::string why) const {
  if (turns.margins.before > mostDeepened)
    stop(Outcome::Kind::Undecided, place, std::move(why));
  Outcome outcome{Outcome::Kind::Again, 0, *hints, place, std::move(why), {}};
  outcome.hints[turns.loop] = {2 * turns.margins.before + 2,
                               turns.margins.behind};
  throw Stop{std::move(outcome)};
}

bool Numbers::isNatural(Affine x, SourceRange place) const {
  if (x.isConstant())
    return x.c >= 0;
  Bounds range = bounds(x);
  if (range.least && *range.least >= 0)
    return true;
  if (range.most && *range.most < 0)
    return false;
  // In terms of t = n, j or n - j, whose answers differ from t = 0 on.
  int64_t slope = x.j == 0 ? x.n : x.n == 0 ? x.j : -x.j;
  // The first t with c + slope t of the other sign.
  __int128 root = x.c >= 0 ? *floorDiv(x.c, -slope) + 1
                           : -*floorDiv(x.c, slope); // ceil(-c / slope)
  split(x, slope == 0 ? 0 : root, false, place);
}

bool Numbers::isZero(Affine x, SourceRange place) const {
  if (x.isConstant())
    return x.c == 0;
  Bounds range = bounds(x);
  if ((range.least && *range.least > 0) || (range.most && *range.most < 0))
    return false;
  int64_t common = std::gcd(x.n, inWindow ? x.j : 0);
  if (common == 0 || x.c % common != 0)
    return false;
  int64_t slope = x.j == 0 ? x.n : x.n == 0 ? x.j : -x.j;
  if (x.j != 0 && x.n != 0 && x.n != -x.j)
    split(x, 0, true, place);
  int64_t root = -x.c / slope;
  split(x, root, true, place);
}

Affine Numbers::product(Affine a, Affine b, SourceRange place) const {
  if (!a.isConstant())
    std::swap(a, b);
  if (!a.isConstant())
    stop(Outcome::Kind::Undecided, place,
         "two numbers that grow with the microbatches are multiplied");
  __int128 most = 0;
  for (int64_t part : {b.c, b.n, b.j})
    most = std::max<__int128>(most, part < 0 ? -part : part);
  if (most * (a.c < 0 ? -a.c : a.c) > largest)
    stop(Outcome::Kind::Undecided, place, "numbers become too large");
  return a.c * b;
}

/// The quotient that a / b has for all n and turns.
std::optional<int64_t> Numbers::commonQuotient(Affine a, int64_t b) const {
  Bounds range = bounds(a);
  if (!range.least || !range.most || *range.least < -INT64_MAX ||
      *range.most > INT64_MAX)
    return std::nullopt;
  auto low = floorDiv(static_cast<int64_t>(*range.least), b),
       high = floorDiv(static_cast<int64_t>(*range.most), b);
  return low && low == high ? low : std::nullopt;
}

Affine Numbers::quotient(Affine a, Affine b, SourceRange place) const {
  if (b.isConstant() && b.c != 0 &&
      (a.isConstant() || (a.n % b.c == 0 && a.j % b.c == 0)))
    return {*floorDiv(a.c, b.c), a.n / b.c, a.j / b.c};
  if (!b.isConstant()) {
    // Small by large, and equals, are simple.
    if (!isNatural(b - 1, place))
      stop(Outcome::Kind::Undecided, place, "it divides by what grows");
    for (int64_t q = 0; q != 4; ++q) {
      Affine rest = a - q * b;
      if (!isNatural(rest, place))
        break;
      if (!isNatural(rest - b, place))
        return q;
    }
    stop(Outcome::Kind::Undecided, place,
         "it divides by a number that grows with the microbatches");
  }
  if (b.c == 0)
    stop(Outcome::Kind::Wrong, place, "it divides by zero");
  if (auto common = commonQuotient(a, b.c))
    return *common;
  int64_t divisor = std::abs(b.c);
  stop(Outcome::Kind::Multiply, place, "it depends on a remainder",
       divisor / std::gcd(divisor, std::gcd(a.n, a.j)));
}

Affine Numbers::remainder(Affine a, Affine b, SourceRange place) const {
  return a - product(b, quotient(a, b, place), place);
}

int64_t Numbers::constant(Affine x, SourceRange place, const char *what) const {
  if (!x.isConstant())
    stop(Outcome::Kind::Undecided, place,
         std::string(what) + " changes from turn to turn");
  return x.c;
}
