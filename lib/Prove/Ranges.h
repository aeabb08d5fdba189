// What is seen in the ranges that were found.
#pragma once

#include "ppcc/Prove/Prove.h"

namespace ppcc {

/// Makes one range of those of all remainders about which the same is said.
void mergeResidues(std::vector<ProvenRange> &ranges);

/// After how many numbers makespans grow as they did before, among those before
/// `end` that stand alone at the end of the ranges; 1 where that is not seen
/// three times.
int64_t periodOf(ArrayRef<ProvenRange> ranges, int64_t end);

/// A number for how the lists of ranks end, whatever the microbatches.
size_t tailHash(const Program &program);
/// After how many numbers the lists of those before `end` end alike again; 1
/// where they do not.
int64_t periodOf(const std::map<int64_t, size_t> &ends, int64_t end);

} // namespace ppcc
