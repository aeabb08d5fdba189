// A schedule that people can read for a program of which only the order is
// known.
#pragma once

#include "ppcc/IR/Program.h"

namespace ppcc {

/// The source text of a schedule called `name` with the placement and costs of
/// the program that runs its compute actions in their order: phases, loops
/// where something repeats itself, one piece for ranks that differ in the
/// counts of their loops alone, and no messages. It is a guess where the
/// language has more than one meaning for what is left out: compile it and
/// compare. O(actions * longest period).
std::string decompile(const Program &program, StringRef name);

} // namespace ppcc
