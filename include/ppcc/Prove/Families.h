// Programs for all numbers of microbatches.
#pragma once

#include "ppcc/Prove/Prove.h"

namespace ppcc {

/// Writes the programs of a proof with evidence as JSON, docs/every-m.md;
/// `free` is its parameter. False, with nothing written, after a report that
/// some number that is admitted, and not wrong, has none.
bool writeFamilies(const Proof &proof, llvm::StringRef free, Session &session,
                   llvm::raw_ostream &out);

} // namespace ppcc
