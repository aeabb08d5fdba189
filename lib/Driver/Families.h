// What ppcc does by way of proofs for all numbers of microbatches.
#pragma once

#include "Options.h"

namespace ppcc {

/// Compiles; large numbers of microbatches as instances of their family, if
/// that is quicker.
Compiled compileAny(const BuildOptions &options, Session &session);

/// Writes the program for all values of the parameter that stays open, or loops
/// whose iterations grow with the microbatches without the program in between.
/// The exit code; nothing where neither is to be done.
std::optional<int> writeByFamilies(const BuildOptions &options,
                                   Session &session, const Invocation &call);

} // namespace ppcc
