// Evaluates a schedule for all P and M of a region.
#pragma once

#include "ppcc/EveryP/Statements.h"
#include "ppcc/Sema/Instance.h"

namespace ppcc::every {

/// Thrown for what has no form that is affine.
struct Refusal {
  SourceRange place;
  std::string why;
};

/// Thrown where a remainder is asked for: a dimension is to be divided into so
/// many parts, by what its numbers leave.
struct Parts {
  Dim dim;
  int64_t number;
};

/// The free parameters, by their numbers, with their values; and the values of
/// others.
struct Free {
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
};

/// Divides all of at least `least` ranks. Throws Refusal, and Parts.
std::vector<Region> regionsOf(const sema::Module &module,
                              const sema::Schedule &schedule, const Free &free,
                              int64_t least);

/// What ranks do where all `facts` are natural. Durations are those of nobody.
/// Throws Refusal, Parts, and std::overflow_error.
Statements layOut(const sema::Module &module, const sema::Schedule &schedule,
                  const Free &free, const Forms &facts);

/// Whether whole numbers for which all premises are natural have a natural
/// goal.
bool implies(const Forms &premises, const Form &goal);

} // namespace ppcc::every
