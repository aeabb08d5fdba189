// Programs of many microbatches by way of a proof about all of them.
#pragma once

#include "ppcc/Prove/Prove.h"

namespace ppcc {

/// Programs of one family.
struct ProgramFamily {
  Compiled sample; ///< The one of n = 1, compiled as any.
  std::shared_ptr<const proof::ResidueFamily> programs;
  int64_t n = 0; ///< That which was asked for.

  /// The program of n; nothing where it has more than `maxActions`.
  std::optional<Program> at(int64_t n, uint64_t maxActions) const;
  /// Makes the sample that which was asked for, with loops, and what is known
  /// of all of its actions, from two smaller ones and checked against the
  /// family; no other is laid out. False where that is no gain, or loops do not
  /// grow evenly; the smaller ones have at most `maxActions`.
  bool roll(uint64_t maxActions);
};

/// The family of a request for a large M, when it is proven; nothing, and no
/// report, where it is not, or would take longer than to compile.
std::optional<ProgramFamily> familyFor(const Request &request,
                                       Session &session);

} // namespace ppcc
