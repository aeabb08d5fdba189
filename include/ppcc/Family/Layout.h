// Lays a schedule out for all microbatches at once.
#pragma once

#include "ppcc/Proof/Template.h"
#include "ppcc/Sema/Instance.h"

namespace ppcc::family {

using proof::Affine;

/// Turns of loops that stand before a window of theirs, and behind it, at
/// least; by statement.
struct Margins {
  int64_t before = 0, behind = 0;
};
using Hints = std::map<uint32_t, Margins>;

/// Where the turns of a loop stand that its window does not need.
enum class Lean : uint8_t { Both, Behind, Before };

/// Some instances of a schedule: its free parameter is base + step n for n in
/// 0..last.
struct Family {
  uint32_t param = 0; ///< The free parameter, an int.
  int64_t base = 1, step = 1, last = proof::endless;
  Lean lean = Lean::Both;
};

/// What became of a layout.
struct Outcome {
  enum class Kind : uint8_t {
    LaidOut,   ///< The template is the program of each instance.
    Excluded,  ///< No instance is admitted by `require`.
    Wrong,     ///< Each instance from n = `value` on has an error.
    Cut,       ///< Instances from n = `value` on behave otherwise, or need a
               ///< larger base.
    Multiply,  ///< The step is to be a multiple of `value` times itself.
    Again,     ///< With the hints.
    Undecided, ///< In other ways than these.
  };
  Kind kind = Kind::LaidOut;
  int64_t value = 0;
  Hints hints; ///< With those that were given; for the upper part of a cut.
  SourceRange place;
  std::string why;
  proof::Template program; ///< Without its head.
};

/// The turns of the loops of a rank that end by counters, by statement, as they
/// come.
using TurnCounts =
    std::map<std::pair<uint32_t, uint32_t>, std::vector<int64_t>>;

/// Evaluates a checked schedule symbolically, with `values` for parameters
/// other than the free one. `sample`, an instance of the family, gives what
/// does not depend on that; null to judge the head alone. `counts` are those of
/// the instances of the first n.
Outcome layOut(const sema::Module &module, const sema::Schedule &schedule,
               ArrayRef<sema::ParamValue> values, const Family &family,
               const sema::Instance *sample, ArrayRef<TurnCounts> counts,
               const Hints &hints, TurnCounts *counted = nullptr);

} // namespace ppcc::family
