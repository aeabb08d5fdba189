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
  void setUnits(llvm::ArrayRef<size_t> all) {
    units.clear();
    for (size_t unit : all)
      units.push_back({unit});
  }
  void add(size_t unit, decimal::Sum amount) {
    decimal::Sum &unclaimed = units[indexOf(unit)].unclaimed;
    unclaimed += amount;
    maxClaim = std::max(maxClaim, unclaimed);
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
    for (size_t u = oldest; u != units.size(); ++u, ++uncharged) {
      decimal::Sum mine = u == own ? amount : 0;
      decimal::Sum need = units[u].unclaimed - mine;
      if (need > free)
        return false;
      if (free >= maxClaim || u >= newest)
        return true;
      free += units[u].taken + mine;
    }
    return true;
  }
  void take(size_t unit, decimal::Sum amount) {
    size_t at = indexOf(unit);
    units[at].unclaimed -= amount;
    units[at].taken += amount;
    if (rest)
      *rest -= amount;
    newest = std::max(newest, at);
  }
  void release(size_t unit, decimal::Sum amount) {
    units[indexOf(unit)].taken -= amount;
    if (rest)
      *rest += amount;
    while (oldest != units.size() && units[oldest].unclaimed == 0 &&
           units[oldest].taken == 0)
      ++oldest;
  }

private:
  struct Unit {
    size_t number;
    decimal::Sum unclaimed = 0, taken = 0;
  };

  /// Mostly a rank has all.
  size_t indexOf(size_t unit) const {
    if (unit < units.size() && units[unit].number == unit)
      return unit;
    return llvm::partition_point(
               units, [&](const Unit &u) { return u.number < unit; }) -
           units.begin();
  }

  std::optional<decimal::Sum> rest; ///< None without a limit.
  decimal::Sum maxClaim = 0;
  std::vector<Unit> units;
  size_t oldest = 0, newest = 0; ///< Places in `units`.
};

} // namespace ppcc
