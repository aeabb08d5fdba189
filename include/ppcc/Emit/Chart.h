// Times over amounts of memory, as a picture.
#pragma once

#include "ppcc/IR/Costs.h"

namespace ppcc {

/// A time that was found with an amount, and the time that no other is below.
struct ChartPoint {
  Amount at;
  Time value, bound;
  std::string mark; ///< What is said beside it, if anything.
};

/// Writes a curve through the points, ascending, as an svg.
void emitChart(ArrayRef<ChartPoint> points, StringRef title, StringRef footer,
               raw_ostream &out);

} // namespace ppcc
