// Programs in which what repeats itself is written once.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

/// The loops of one rank.
llvm::ArrayRef<Loop> loopsOf(const Program &program, RankId rank);

/// The actions that run, loops counted as often as they turn.
uint64_t flatSize(const Program &program);

/// The program with each loop written out. flatSize() must fit an ActionId.
/// O(flatSize()).
Program unrolled(const Program &program);

} // namespace ppcc
