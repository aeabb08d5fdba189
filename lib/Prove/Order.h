// Numbers for the events of a template, from runs of two of its programs.
#pragma once

#include "Fit.h"

namespace ppcc {

/// Numbers with which the checker shows that no rank waits for itself. In
/// `finding` what is wrong with them: Fails where the programs of n = 1 and 2
/// do not reach their end.
std::optional<proof::Times> orderBy(const proof::Template &program,
                                    const proof::Checker &checker,
                                    const Transport *transport,
                                    const Sample &first, const Sample &second,
                                    proof::Finding &finding);

/// Whether costs are the same for all microbatches.
bool hasPlainTimes(const Program &program);

} // namespace ppcc
