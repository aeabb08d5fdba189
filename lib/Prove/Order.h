// Numbers for the events of a template, from runs of two of its programs.
#pragma once

#include "Fit.h"

#include "ppcc/Analysis/Simulation.h"

namespace ppcc {

/// A program of a template, as runs see it.
struct Sample {
  const Program &program;
  const ProgramIndex &index;
  const MessageIndex *messages = nullptr; ///< Null for data alone.
};

/// Numbers with which the checker shows that no rank waits for itself. In
/// `finding` what is wrong with them: Fails where the programs of n = 1 and 2
/// do not reach their end.
std::optional<proof::Times> orderBy(const proof::Template &program,
                                    const proof::Checker &checker,
                                    const Transport *transport,
                                    const Sample &first, const Sample &second,
                                    proof::Finding &finding);

/// Functions through the times of a run of both; nothing where there are none.
std::optional<proof::Times> timesBy(const proof::Template &program,
                                    const Transport *transport,
                                    const Sample &first, const Sample &second);

/// Whether costs are the same for all microbatches.
bool hasPlainTimes(const Program &program);

} // namespace ppcc
