// Programs for all numbers of microbatches.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Proof/Formula.h"

namespace ppcc::proof {

/// The programs of M = base + step n.
struct ResidueFamily {
  Program head; ///< Without rows.
  int64_t base = 1, step = 1;
  /// With messages; without ranks where these do not settle.
  Template withMessages;
  std::vector<RankPair> preconnect;
  std::vector<ProgramParam> secondParams; ///< The parameters of n = 2; the
                                          ///< head's are those of 1.

  /// The value of a parameter as a function of n, where that changes it.
  std::optional<Affine> paramFormula(size_t param) const {
    int64_t first, second;
    if (secondParams.empty() ||
        !llvm::to_integer(secondParams[param].value, second) ||
        !llvm::to_integer(head.params()[param].value, first) || first == second)
      return std::nullopt;
    return Affine{2 * first - second, second - first};
  }
};

/// Numbers from..to of one remainder, of which one thing is said.
struct ProgramRange {
  int64_t modulus = 1, residue = 0, from = 1;
  std::optional<int64_t> to; ///< Nothing for no end.
  std::string verdict;       ///< `valid`, `invalid`, `excluded`, `undecided`.
  std::string reason;
  std::shared_ptr<const ResidueFamily> programs; ///< Null for none.
};

struct ParametricProgram {
  std::string schedule, free;
  std::vector<std::string> transports;
  std::vector<ProgramRange> ranges;
};

} // namespace ppcc::proof
