// What a run takes besides its time, as formulas.
#pragma once

#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Family/SymbolicExpand.h"
#include "ppcc/Proof/Costs.h"
#include "ppcc/Prove/Prove.h"

namespace ppcc {

/// A function of n as one of the numbers of the family, in units.
inline Formula formula(const family::Family &family, proof::Affine value,
                       int64_t unit) {
  return Formula::of(value, family.base, family.step, unit);
}

/// Those of one program, and of its run if it has one.
Metrics metricsOf(const Program &program, const TimedRun *timing);

/// Those of a template without messages, one of whose programs is `sample`.
Metrics metricsOf(const family::Family &family, const proof::Template &program,
                  const proof::Costs &costs, const Program &sample);

/// What stands between two turns of a window on the way of times that leads to
/// the end of the run of n = 2.
std::vector<std::string> bottleneckOf(const proof::Template &program,
                                      const Program &second,
                                      const Simulation &run);

} // namespace ppcc
