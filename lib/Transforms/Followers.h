// Actions that follow messages, which are placed once those are.
#pragma once

#include "ppcc/Pass/Pass.h"

namespace ppcc {

/// Puts what `place` makes of a program, with its messages, in its place.
///
/// `place` does not see the rows that must stand after a message of their
/// stage, by a rule of their kind. Each comes back after the last message that
/// it follows; at the end of its rank where there is none, for Verify to
/// report. O(actions).
PassResult placeAroundFollowers(
    Program &program,
    function_ref<std::optional<Program>(const Program &)> place);

} // namespace ppcc
