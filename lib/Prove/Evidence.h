// What shows that programs are right.
#pragma once

#include "Single.h"

namespace ppcc {

/// Evidence about the programs of base + step n, with nothing in it.
std::shared_ptr<proof::Evidence> beginEvidence(int64_t base, int64_t step,
                                               const Program &sample);

/// What shows that the program of one number is right; `byData` of its makespan
/// that it is that of a run by data.
std::shared_ptr<proof::Evidence> evidenceOf(int64_t m, const Program &program,
                                            ArrayRef<Transport> transports,
                                            bool byData, bool hasMakespan,
                                            Singles &singles);

} // namespace ppcc
