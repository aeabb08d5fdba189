// Changes inputs by tokens, and schedules by sentences of the grammar.
#pragma once

#include "ppcc/Support/LLVM.h"

#include <random>

namespace ppcc {

using Random = std::minstd_rand;

/// One that something may stumble over.
std::string number(Random &random);
/// The text with tokens left out, moved, or with others in their places.
std::string changeTokens(StringRef text, bool isSchedule, Random &random);

} // namespace ppcc
