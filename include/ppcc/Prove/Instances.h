// Programs of many microbatches by way of a proof about all of them.
#pragma once

#include "ppcc/Prove/Prove.h"

namespace ppcc {

/// Programs of one family.
struct Instances {
  Compiled sample; ///< The one of n = 1, compiled as any.
  std::shared_ptr<const proof::Evidence> evidence;
  int64_t n = 0; ///< That which was asked for.

  /// The program of n; nothing where it has more than `maxActions`.
  std::optional<Program> at(int64_t n, uint64_t maxActions) const;
  /// What `emit` writes of the program of n, from what it writes of smaller
  /// ones, where that is one text but for numbers that grow with n. Texts of
  /// programs with more than `maxActions` are not looked at.
  std::optional<std::string>
  text(llvm::function_ref<bool(const Program &, llvm::raw_ostream &)> emit,
       uint64_t maxActions) const;
};

/// The family of a request for a large M, when it is proven; nothing, and no
/// report, where it is not, or would take longer than to compile.
std::optional<Instances> instancesFor(const Request &request, Session &session);

} // namespace ppcc
