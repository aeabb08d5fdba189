// What a run takes besides its time, as formulas.
#pragma once

#include "ppcc/Analysis/Simulation.h"
#include "ppcc/Family/Layout.h"
#include "ppcc/Prove/Prove.h"

namespace ppcc {

/// A function of n as one of the numbers of the family, in units.
inline Formula formula(const family::Family &family, proof::Affine value,
                       int64_t unit) {
  return Formula::of(value, family.base, family.step, unit);
}

/// Those of one program, of the number m.
Figures figuresOf(int64_t m, const Program &program);

/// Those of a template; `second` is its instance of n = 2, which `run` ran.
Figures figuresOf(const family::Family &family, const proof::Template &program,
                  const std::vector<std::vector<Time>> &durations,
                  const Program &second, const Simulation *run);

} // namespace ppcc
