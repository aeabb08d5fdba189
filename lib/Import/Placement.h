// Finds the placement, the pipes and the microbatches that actions imply.
#pragma once

#include "ppcc/Import/Importer.h"

namespace ppcc {

/// Fills in all of `program` but its rows, and the pipe and peer of each row,
/// from the stages and microbatches that its ranks compute. With `severalPipes`
/// a stage may be on two ranks when pipes explain it: ranges of microbatches
/// with a placement each, which put equally many stages on each rank. False
/// after reports that nothing explains the rows. O(actions).
bool inferPlacement(Program &program, bool severalPipes,
                    ImportContext &context);

} // namespace ppcc
