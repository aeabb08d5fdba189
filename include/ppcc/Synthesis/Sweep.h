// Memory against time: the best order for each of several limits.
#pragma once

#include "ppcc/Support/TextTable.h"
#include "ppcc/Synthesis/Synthesize.h"

namespace ppcc {

/// What was found for one limit.
struct SweepPoint {
  Amount limit = 0;
  bool fits = false; ///< Whether any order does; there are no figures else.
  Time value = 0, bound = 0, gap = 0;
  decimal::Sum peakMemory = 0; ///< Of the rank that holds most.
  bool isKnee = false;         ///< From here on, more memory buys less time.

  bool isOptimal() const { return value <= bound; }
};

/// Looks for the best order for each limit, ascending, each with what was found
/// below it. `note` is called with each limit before. Nothing after reports.
std::optional<std::vector<SweepPoint>>
sweepLimits(const SynthesisRequest &request, ArrayRef<Amount> limits,
            Session &session, function_ref<void(Amount)> note);

TextTable tableOf(ArrayRef<SweepPoint> points);

} // namespace ppcc
