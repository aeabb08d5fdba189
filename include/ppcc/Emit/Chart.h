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

/// Writes a curve through the points, ascending, as an svg, else as a pdf.
void emitChart(ArrayRef<ChartPoint> points, StringRef title, StringRef footer,
               bool isSvg, raw_ostream &out);

} // namespace ppcc
