// Decides affine inequalities f = c + a n + b j >= min on a Domain: all n in
// from..to, which may be unbounded, and for each all j in lo(n)..hi(n). Also
// solves equations of iterations on Domains, and checks that Domains cover one.
//
// Algorithm: an affine function on a polyhedron is least at a vertex unless it
// falls along a ray (Minkowski-Weyl theorem; Schrijver, Theory of Linear and
// Integer Programming, 1986). In two dimensions all vertices and rays lie on
// the edges j = lo(n) and j = hi(n); isAtLeast tests f at the ends of both.
// forEachPiece divides the n where the greatest low or least high changes.
// Invariant: isAtLeast is exact, since vertices are integer points of the
// Domain. It computes in 128 bits and throws for what may not fit.
// Cost: O(1) for isAtLeast; O(k^2) pieces for k conditions and bounds.
// Example: n - j >= 0 on n >= 0, 0 <= j <= n:
//   on j = 0 it is n: 0 at n = 0, and it does not fall;
//   on j = n it is 0, so it holds. n - j >= 1 fails there.
#pragma once

#include "ppcc/Proof/Template.h"
#include "ppcc/Support/CheckedInt.h"

namespace ppcc::proof {

/// Some n, and where an event has iterations, for each of them those from lo to
/// hi; none of these ranges is empty.
struct Domain {
  int64_t from = 0, to = unbounded;
  bool hasIterations = false;
  Affine lo, hi;
};

/// The n and the iterations of a row.
inline Domain fullDomain(const Template &program, const Row &row) {
  return {0, program.last, row.loop != noLoop, {}, {0, 1, 0}};
}

/// The iteration of a row, and the last of a window.
inline constexpr Affine thisIteration{0, 0, 1}, lastIteration{0, 1, 0};

/// Calls `visit(row, before, iteration, domain)` for rows of a rank and, for
/// each key that a row `asks` for, the last row before it that has the key,
/// with its iteration on a domain of the row's.
template <class KeyOf, class Asks, class Visit>
void forEachPredecessor(const Template &program, ArrayRef<Row> rows,
                        KeyOf keyOf, Asks asks, Visit visit) {
  std::map<uint32_t, uint32_t> last; // By key: its last row so far,
  for (uint32_t begin = 0, end; begin != rows.size(); begin = end) {
    end = blockEnd(rows, begin);
    std::map<uint32_t, uint32_t> inBlock,
        inTurn; // of an iteration, and in it so far.
    for (uint32_t row = begin; row != end; ++row)
      if (auto key = keyOf(row))
        inBlock[*key] = row;
    for (uint32_t row = begin; row != end; ++row) {
      for (uint32_t key : asks(row)) {
        Domain domain = fullDomain(program, rows[row]);
        if (auto found = inTurn.find(key); found != inTurn.end()) {
          visit(row, found->second, domain.hasIterations ? thisIteration : 0,
                domain);
          continue;
        }
        if (auto again = inBlock.find(key);
            domain.hasIterations && again != inBlock.end()) {
          Domain later = domain;
          later.from = 1;
          later.lo = 1;
          if (program.last > 0)
            visit(row, again->second, Affine{-1, 0, 1}, later);
          domain.hi = {};
        }
        if (auto found = last.find(key); found != last.end())
          visit(row, found->second,
                rows[found->second].loop == noLoop ? 0 : lastIteration, domain);
      }
      if (auto key = keyOf(row))
        inTurn[*key] = row;
    }
    for (auto [key, row] : inBlock)
      last[key] = row;
  }
}

/// Whether c + n N >= 0 for the n of a domain. Throws std::overflow_error for
/// what may not fit.
inline bool isNonNegative(__int128 c, __int128 n, const Domain &domain) {
  constexpr __int128 one = 1; // The n are below 2^62.
  if (n > one << 64 || -n > one << 64 || c > one << 125 || -c > one << 125)
    throw std::overflow_error("sum");
  return c + n * domain.from >= 0 &&
         (domain.to == unbounded ? n >= 0 : c + n * domain.to >= 0);
}

/// Whether f >= least on all of the domain: it is on all corners and along all
/// rays.
inline bool isAtLeast(Affine f, const Domain &domain, int64_t min) {
  auto on = [&](Affine iteration) {
    return isNonNegative(__int128(f.c) + __int128(f.j) * iteration.c - min,
                         __int128(f.n) + __int128(f.j) * iteration.n, domain);
  };
  return domain.hasIterations ? on(domain.lo) && on(domain.hi) : on({});
}

inline bool isZero(Affine f, const Domain &domain) {
  return isAtLeast(f, domain, 0) && isAtLeast(-1 * f, domain, 0);
}

/// Puts an iteration into f.
inline Affine substitute(Affine f, Affine iteration) {
  return Affine{f.c, f.n, 0} + f.j * iteration;
}

/// x / k where that is whole for all n and j. Else nothing, and `never` when it
/// is whole for none.
inline std::optional<Affine> divide(Affine x, int64_t k, bool &never) {
  int64_t common = std::gcd(std::gcd(x.n, x.j), k);
  never = common == 0 ? x.c != 0 : x.c % common != 0;
  if (k == 0 || x.c % k != 0 || x.n % k != 0 || x.j % k != 0)
    return std::nullopt;
  return Affine{x.c / k, x.n / k, x.j / k};
}

/// Calls `visit` with the domains in which all `conditions`, functions of n,
/// are non-negative, and iterations lie above all lows and below all highs.
template <class Visit>
void forEachPiece(int64_t last, ArrayRef<Affine> conditions,
                  ArrayRef<Affine> lows, ArrayRef<Affine> highs, Visit visit) {
  // Between two cuts no difference changes its sign.
  SmallVector<int64_t, 16> breakpoints{0};
  auto addBreakpoint = [&](Affine f) {
    if (f.n == 0)
      return;
    int64_t root = *floorDiv(-f.c, f.n);
    for (int64_t at : {root, root + 1})
      if (at > 0 && at <= last)
        breakpoints.push_back(at);
  };
  for (Affine f : conditions)
    addBreakpoint(f);
  SmallVector<Affine, 8> ends(lows);
  ends.append(highs.begin(), highs.end());
  for (size_t i = 0; i != ends.size(); ++i)
    for (size_t k = 0; k != i; ++k)
      addBreakpoint(ends[i] - ends[k]);
  llvm::sort(breakpoints);
  breakpoints.erase(llvm::unique(breakpoints), breakpoints.end());
  for (size_t i = 0; i != breakpoints.size(); ++i) {
    Domain domain{breakpoints[i],
                  i + 1 == breakpoints.size() ? last : breakpoints[i + 1] - 1,
                  !lows.empty(),
                  {},
                  {}};
    auto order = [&](Affine a, Affine b) {
      return std::pair(a.at(domain.from), a.n) <
             std::pair(b.at(domain.from), b.n);
    };
    if (!llvm::all_of(conditions, [&](Affine f) {
          return isNonNegative(f.c, f.n, domain);
        }))
      continue;
    if (domain.hasIterations) {
      domain.lo = *llvm::max_element(lows, order);
      domain.hi = *llvm::min_element(highs, order);
      Affine size = domain.hi - domain.lo;
      if (!isNonNegative(size.c, size.n, domain))
        continue;
    }
    visit(domain);
  }
}

/// Whether the pieces hold all of the whole, iteration by iteration.
inline bool covers(ArrayRef<Domain> pieces, const Domain &whole) {
  if (llvm::any_of(pieces, [&](const Domain &piece) {
        return piece.from <= whole.from && piece.to >= whole.to &&
               (!whole.hasIterations ||
                (piece.lo == whole.lo && piece.hi == whole.hi));
      }))
    return true;
  std::set<int64_t> breakpoints{0};
  for (const Domain &piece : pieces) {
    breakpoints.insert(piece.from);
    if (piece.to != unbounded && piece.to < whole.to)
      breakpoints.insert(piece.to + 1);
  }
  for (auto cut = breakpoints.begin(); cut != breakpoints.end(); ++cut) {
    auto next = std::next(cut);
    Domain part{
        *cut, next == breakpoints.end() ? whole.to : *next - 1, false, {}, {}};
    std::vector<Domain> here; // In the likely order.
    for (const Domain &piece : pieces)
      if (piece.from <= part.from && piece.to >= part.to)
        here.push_back(piece);
    if (whole.hasIterations)
      llvm::sort(here, [&](const Domain &a, const Domain &b) {
        return std::pair(a.lo.n, a.lo.c) < std::pair(b.lo.n, b.lo.c);
      });
    Affine reached; // All iterations before it are covered.
    bool done = !whole.hasIterations && !here.empty(),
         moved = whole.hasIterations;
    while (!done && moved) {
      moved = false;
      for (const Domain &piece : here) {
        Affine to = piece.hi + 1;
        if (isAtLeast(reached - piece.lo, part, 0) &&
            isAtLeast(to - reached, part, 0) && to != reached) {
          reached = to;
          moved = true;
        }
      }
      done |= whole.hasIterations && isAtLeast(reached - whole.hi, part, 1);
    }
    if (!done)
      return false;
  }
  return true;
}

/// Calls `visit(iteration, domain)` for where a function `of` of one row, in
/// its iteration, equals `wanted` of another, on a part of `whole`, which has
/// the iterations of that one. False where it is not known.
template <class Visit>
bool forEachSolution(const Domain &whole, Affine wanted, Affine of,
                     bool ofHasTurns, Visit visit) {
  // Most are equal on all of the domain, or nowhere.
  if (!whole.hasIterations && !ofHasTurns && (wanted - of).isConstant()) {
    if (wanted == of)
      visit(Affine{}, whole);
    return true;
  }
  if (whole.hasIterations && ofHasTurns && wanted == of && of.j != 0 &&
      whole.lo == Affine{} && whole.hi == lastIteration) {
    visit(thisIteration, whole);
    return true;
  }
  SmallVector<Affine, 4> lows, highs, conditions;
  auto require = [&](Affine f) { // f >= 0
    if (f.j == 0)
      conditions.push_back(f);
    else
      (f.j > 0 ? lows : highs).push_back({-f.j * f.c, -f.j * f.n, 0});
    return std::abs(f.j) <= 1;
  };
  bool never, known = true;
  if (whole.from > 0)
    require(Affine{-whole.from, 1, 0});
  if (whole.hasIterations)
    known &=
        require(thisIteration - whole.lo) && require(whole.hi - thisIteration);
  Affine iteration;
  if (ofHasTurns) {
    auto found = divide(wanted - substitute(of, {}), of.j, never);
    if (!found)
      return never;
    iteration = *found;
    known &= require(iteration) && require(lastIteration - iteration);
  } else if (wanted.j == 0) {
    known &= require(of - wanted) && require(wanted - of);
  } else {
    auto at = divide(of - substitute(wanted, {}), wanted.j, never);
    if (!at)
      return never;
    known &= require(thisIteration - *at) && require(*at - thisIteration);
  }
  if (known)
    forEachPiece(whole.to, conditions, lows, highs,
                 [&](const Domain &domain) { visit(iteration, domain); });
  return known;
}

} // namespace ppcc::proof
