// What ppcc does by way of proofs for all numbers of microbatches.
#pragma once

#include "Options.h"

namespace ppcc {

/// Compiles large numbers of microbatches as instances of their family, if that
/// is quicker; loops whose iterations grow with the microbatches without the
/// program in between.
CompileByFamily compileByFamily;

/// Writes the program for all values of the parameter that stays open. The exit
/// code.
int writeForAll(const BuildOptions &options, Session &session,
                const Invocation &call);

} // namespace ppcc
