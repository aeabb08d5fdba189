// Writes an order as a schedule that people can read.
#pragma once

#include "ppcc/Decompile/ScheduleText.h"
#include "ppcc/Synthesis/Orders.h"

namespace ppcc::synthesis {

using schedtext::ScheduleHeader;

/// The source text of a schedule with the placement and costs of `program` that
/// runs `order`: phases, loops where something repeats itself, and one piece
/// for ranks that differ in the counts of their loops alone; without an order,
/// of ranks that do nothing in them. It looks for a shorter text for so many
/// steps.
std::string write(const Program &program, const Problem &problem,
                  const ScheduleHeader &head, const Order *order = nullptr,
                  uint64_t steps = 0);

/// What the text expands to, without places.
Rows rowsOf(const Program &program, const Problem &problem, const Order &order);

/// The microbatches of a pipe, from one to before another.
struct MicrobatchRange {
  int64_t begin, end;
};

/// Two orders of one way to go on: of `microbatches`, and of a period more.
struct OrderExtension {
  const Problem *problem; ///< Of the first; null where there is none.
  int64_t microbatches;
  Order order, longer;
  /// The microbatches of each pipe, in both.
  std::vector<MicrobatchRange> pipes, longerPipes;
};

/// A schedule for all numbers of microbatches from `least` on.
struct WrittenFamily {
  std::string text;
  int64_t minMicrobatches = 1;
};

/// The same for any number of microbatches, the parameter M: one growth for
/// each remainder of M by their number, in that order; M has only remainders of
/// those that are. What of an order is
/// longer in the other must be iterations of loops; nothing when it is not, or
/// when some number of iterations would not fit a rank's capacity.
std::optional<WrittenFamily> writeFamily(const Program &program,
                                         ArrayRef<OrderExtension> extensions,
                                         const ScheduleHeader &head,
                                         int64_t minMicrobatches = 1);

} // namespace ppcc::synthesis
