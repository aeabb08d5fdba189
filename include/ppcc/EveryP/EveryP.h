// Judges a schedule for every number of ranks and of microbatches.
#pragma once

#include "ppcc/EveryP/Form.h"
#include "ppcc/Prove/Prove.h"

namespace ppcc::every {

/// ranks P + microbatches M + intercept.
struct PlaneFormula {
  Rational ranks, microbatches, intercept;
  bool isExact = false; ///< Else a bound from above.
  bool operator==(const PlaneFormula &) const = default;
  std::string text(StringRef ranksName, StringRef name) const;
};

/// Numbers that leave a remainder.
struct Remainder {
  int64_t modulus = 1, residue = 0;
  bool operator==(const Remainder &) const = default;
};

/// The numbers of ranks and microbatches for which all of `where`, forms of P
/// and M, is non-negative, and that leave these remainders.
struct PlaneRange {
  Forms where;           ///< None of them follows from the others.
  int64_t fromRanks = 1; ///< The least P of these, if that is small.
  Remainder ranks, microbatches;
  Verdict verdict = Verdict::Undecided;
  std::optional<PlaneFormula> makespan;
  std::string reason;
  Location place; ///< Of the reason, if it has one.
};

/// All P >= 1 and M >= 1 lie in one of the ranges.
struct PlaneProof {
  std::string schedule;
  std::vector<ProgramParam> params; ///< Other than the free ones.
  std::vector<std::string> transports;
  std::vector<PlaneRange> ranges;
  bool isValid() const;
};

/// Judges; `request.free` names both parameters, the ranks first. Nothing
/// after a report, or with a usage error, as in prove().
std::optional<PlaneProof> proveEvery(const ProveRequest &request,
                                     Session &session, std::string &usageError);

} // namespace ppcc::every
