// What of a program is shown.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

/// What of a program is printed.
struct PrintOptions {
  std::vector<RankId> ranks; ///< Only these; all when it is empty.
  /// Only actions of the microbatches from `first` up to, not including,
  /// `second`.
  std::optional<std::pair<uint32_t, uint32_t>> microbatches;
  bool hidesSites = false; ///< Where the actions come from.
};

} // namespace ppcc
