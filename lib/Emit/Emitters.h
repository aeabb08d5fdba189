// The functions that Emitters.def names.
#pragma once

#include "ppcc/Emit/Emitter.h"

namespace ppcc {

#define EMITTER(Name, Function, Programs, Reads, Summary)                      \
  void Function(const Program &program, raw_ostream &out, EmitContext &context);
#include "ppcc/Emit/Emitters.def"
#undef EMITTER

} // namespace ppcc
