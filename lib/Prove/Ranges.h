// What is seen in the ranges that were found.
#pragma once

#include "ppcc/Prove/Prove.h"

namespace ppcc {

/// Makes one range of those of all remainders about which the same is said.
void joinRemainders(std::vector<ProvenRange> &ranges);

/// After how many numbers makespans grow as they did before, among those before
/// `end` that stand alone at the end of the ranges; 1 where that is not seen
/// three times.
int64_t periodOf(llvm::ArrayRef<ProvenRange> ranges, int64_t end);

} // namespace ppcc
