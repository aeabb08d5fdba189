// What a certificate of `ppcc synthesize` shows: how long an order takes, and
// that no order takes less than a bound.
#pragma once

#include "ppcc/Support/LLVM.h"

#include "llvm/Support/Error.h"

namespace ppcc::proof {

struct Optimality {
  std::string given;    ///< The model, as it stands in the file.
  std::string argument; ///< Of the bound.
  std::string unit;     ///< Of both, a decimal.
  int64_t makespan, bound;
};

/// What the file shows; or why it is no certificate of this kind, or does not
/// show what it claims.
llvm::Expected<Optimality> checkOptimality(StringRef text);

} // namespace ppcc::proof
