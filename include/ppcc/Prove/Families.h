// Programs for all numbers of microbatches.
#pragma once

#include "ppcc/Prove/Prove.h"

namespace ppcc {

/// Writes the programs of a proof with evidence as JSON, docs/every-m.md;
/// `free` is its parameter. False, with nothing written, after a report that
/// some number that is admitted, and not wrong, has none.
bool writeFamilies(const Proof &proof, llvm::StringRef free, Session &session,
                   llvm::raw_ostream &out);

/// The same as text, which is for people only.
bool printFamilies(const Proof &proof, llvm::StringRef free, Session &session,
                   llvm::raw_ostream &out);

/// What both write of: the last of the programs of a proof; null after the same
/// report.
const proof::Evidence *familiesOf(const Proof &proof, llvm::StringRef free,
                                  Session &session);

} // namespace ppcc
