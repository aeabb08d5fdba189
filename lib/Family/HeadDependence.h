// What the head of a schedule says must be the same for all n.
#pragma once

#include "AffineDomain.h"

namespace ppcc::family {

/// Ends where something of the head depends on the free parameter, other than
/// what is evaluated for all n: what is required, and microbatches.
void requireConstantHead(const AffineEvaluator &terms,
                         const sema::Schedule &schedule);

} // namespace ppcc::family
