// Lays a schedule out for all microbatches at once.
#pragma once

#include "ppcc/Model/Instance.h"
#include "ppcc/Proof/Template.h"

namespace ppcc::family {

using proof::Affine;

/// How many iterations of a loop are peeled before its steady state and after
/// it, at least; by statement.
struct PeelCounts {
  int64_t before = 0, after = 0;
};
using PeelHints = std::map<uint32_t, PeelCounts>;

/// Where the iterations of a loop stand that its window does not need.
enum class PeeledSide : uint8_t { Both, Behind, Before };

/// Some instances of a schedule: its free parameter is base + step n for n in
/// 0..last.
struct Family {
  uint32_t param = 0; ///< The free parameter, an int.
  int64_t base = 1, step = 1, last = proof::unbounded;
  PeeledSide peeledSide = PeeledSide::Both;
};

/// What became of a layout.
struct Outcome {
  enum class Kind : uint8_t {
    Expanded,     ///< The template is the program of each instance.
    Excluded,     ///< No instance is admitted by `require`.
    Invalid,      ///< Each instance from n = `value` on has an error.
    CaseSplit,    ///< Instances from n = `value` on behave otherwise, or need a
                  ///< larger base.
    ResidueSplit, ///< The step is to be a multiple of `value` times itself.
    Retry,        ///< With the hints.
    Undecided,    ///< In other ways than these.
  };
  Kind kind = Kind::Expanded;
  int64_t value = 0;
  PeelHints hints; ///< With those that were given; for the upper part of a cut.
  SourceRange place;
  std::string why;
  proof::Template program; ///< Without its head.
};

/// The iterations of the loops of a rank that end by counters, by statement, as
/// they come.
using TripCounts =
    std::map<std::pair<uint32_t, uint32_t>, std::vector<int64_t>>;

/// Evaluates a checked schedule symbolically, with `values` for parameters
/// other than the free one. `sample`, an instance of the family, gives what
/// does not depend on that; null to judge the head alone. `counts` are those of
/// the instances of the first n.
Outcome expandSymbolically(const sema::Module &module,
                           const sema::Schedule &schedule,
                           ArrayRef<sema::ParamValue> values,
                           const Family &family, const sema::Instance *sample,
                           ArrayRef<TripCounts> counts, const PeelHints &hints,
                           TripCounts *tripCountsOut = nullptr);

} // namespace ppcc::family
