// Programs for all numbers of microbatches.
#pragma once

#include "ppcc/Prove/Prove.h"

namespace ppcc {

/// The programs of a proof with evidence; `free` is its parameter. Nothing
/// after a report that some number that is admitted, and not wrong, has none.
std::optional<proof::ParametricProgram>
familiesOf(const Proof &proof, StringRef free, Session &session);

} // namespace ppcc
