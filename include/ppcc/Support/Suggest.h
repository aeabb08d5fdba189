// Finds the name that the user probably meant.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace ppcc {

/// The candidate nearest to `name`, or an empty one when none is near (a third
/// of its letters, at least one, may differ; case counts for nothing). The
/// first of equals wins; a name of more than 200 letters has none. O(letters of
/// the name and of those candidates that are about as long).
llvm::StringRef nearestName(llvm::StringRef name,
                            llvm::ArrayRef<llvm::StringRef> candidates);

/// `; did you mean `x`?`, or nothing when no candidate is near: the end of a
/// message about an unknown name.
std::string didYouMean(llvm::StringRef name,
                       llvm::ArrayRef<llvm::StringRef> candidates);

} // namespace ppcc
