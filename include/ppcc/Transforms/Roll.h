// Turns what repeats itself on a rank into loops, and back.
#pragma once

#include "ppcc/Pass/Pass.h"

namespace ppcc {

/// The flat `program` with loops for what repeats itself on a rank: the same
/// kinds, stages, peers, phases, groups and sites, microbatches advancing by a
/// constant. Loops do not nest; those that save the most rows are taken first.
/// The candidates are the repeats whose period two rows in a row were seen
/// before. O(actions) for schedules, whose repeats seldom overlap.
Program rolled(const Program &program);

/// The pass `roll`.
PassResult roll(Program &program, PassContext &context);
/// The pass `unroll`.
PassResult unroll(Program &program, PassContext &context);

} // namespace ppcc
