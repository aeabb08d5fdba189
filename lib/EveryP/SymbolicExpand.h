// Evaluates a schedule for all P and M of a region.
#pragma once

#include "ppcc/EveryP/Statements.h"
#include "ppcc/Model/Instance.h"

namespace ppcc::every {

/// Thrown for what has no form that is affine.
struct Refusal {
  SourceRange place;
  std::string why;
};

/// Thrown where a remainder is asked for: a dimension is to be divided into so
/// many parts, by what its numbers leave.
struct ResidueSplit {
  Dim dim;
  int64_t number;
};

/// The free parameters, by their numbers, with their values; and the values of
/// others.
struct FreeParameters {
  uint32_t ranks = 0, microbatches = 0;
  ArrayRef<sema::ParamValue> values;
  Form numRanks = Form::of(P), numMicrobatches = Form::of(M);
};

/// P and M of which the schedule takes one way through its head.
struct Region {
  Forms facts;
  bool isAdmitted = true;
  SourceRange place; ///< Of what does not admit them.
  std::string why;
  bool isInvalid = false; ///< Rather than excluded.
};

/// Divides all of at least `minRanks` ranks. Throws Refusal, and ResidueSplit.
std::vector<Region> regionsOf(const sema::Module &module,
                              const sema::Schedule &schedule,
                              const FreeParameters &free, int64_t minRanks);

/// What ranks do where all `facts` are non-negative. Durations are those of
/// nobody. Throws Refusal, ResidueSplit, and std::overflow_error.
Statements expandSymbolically(const sema::Module &module,
                              const sema::Schedule &schedule,
                              const FreeParameters &free, const Forms &facts);

/// Whether whole numbers for which all premises are non-negative have a
/// non-negative goal.
bool implies(const Forms &premises, const Form &goal);

} // namespace ppcc::every
