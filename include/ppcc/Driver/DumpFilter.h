// The text of --print-rank and --print-microbatches.
#pragma once

#include "ppcc/IR/Text.h"

namespace ppcc {

/// Takes `3` or `0,2` into the ranks of `options`. Empty, or what is wrong.
std::string parsePrintRanks(StringRef text, PrintOptions &options);

/// Takes `0..4`, or `2` for one, into the microbatches of `options`. Empty, or
/// what is wrong.
std::string parsePrintMicrobatches(StringRef text, PrintOptions &options);

} // namespace ppcc
