// The banker's algorithm (Dijkstra, EWD 108) on one rank.
#pragma once

#include "ppcc/Support/Decimal.h"

namespace ppcc {

/// The banker of a rank: something of which there is so much, that forwards
/// take and backwards give back. Microbatches have one order on all ranks, so
/// that the oldest can always end.
class ResourcePool {
public:
  /// With these units, ascending, which are all that it is asked about.
  void setUnits(std::vector<size_t> all) {
    units = std::move(all);
    unclaimed.assign(units.size(), 0), taken.assign(units.size(), 0);
  }
  void add(size_t unit, decimal::Sum amount) {
    size_t at = indexOf(unit);
    unclaimed[at] += amount;
    maxClaim = std::max(maxClaim, unclaimed[at]);
  }
  void setLimit(decimal::Sum limit) { rest = limit; }

  /// Adds to `looks` what it looks at.
  bool isSafe(size_t unit, decimal::Sum amount, uint64_t &uncharged) const {
    if (!rest)
      return true;
    decimal::Sum free = *rest - amount;
    if (free < 0 || free >= maxClaim)
      return free >= 0;
    size_t own = indexOf(unit);
    for (size_t u = oldest; u != unclaimed.size(); ++u, ++uncharged) {
      decimal::Sum mine = u == own ? amount : 0, need = unclaimed[u] - mine;
      if (need > free)
        return false;
      if (free >= maxClaim || u >= newest)
        return true;
      free += taken[u] + mine;
    }
    return true;
  }
  void take(size_t unit, decimal::Sum amount) {
    size_t at = indexOf(unit);
    unclaimed[at] -= amount;
    taken[at] += amount;
    if (rest)
      *rest -= amount;
    newest = std::max(newest, at);
  }
  void release(size_t unit, decimal::Sum amount) {
    taken[indexOf(unit)] -= amount;
    if (rest)
      *rest += amount;
    while (oldest != taken.size() && unclaimed[oldest] == 0 &&
           taken[oldest] == 0)
      ++oldest;
  }

private:
  /// Mostly a rank has all.
  size_t indexOf(size_t unit) const {
    return unit < units.size() && units[unit] == unit
               ? unit
               : llvm::lower_bound(units, unit) - units.begin();
  }

  std::optional<decimal::Sum> rest; ///< None without a limit.
  decimal::Sum maxClaim = 0;
  std::vector<size_t> units;
  std::vector<decimal::Sum> unclaimed, taken; ///< By place of the unit.
  size_t oldest = 0, newest = 0;
};

} // namespace ppcc
