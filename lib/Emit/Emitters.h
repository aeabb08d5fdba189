// The functions that Emitters.def names, and parts of programs in JSON, as
// docs/program-format.md describes them.
#pragma once

#include "ppcc/Emit/Emitter.h"
#include "ppcc/Emit/Writer.h"

namespace ppcc {

#define EMITTER(Name, Extension, Function, Programs, Reads, Summary)           \
  void Function(const Program &program, raw_ostream &out, EmitContext &context);
#include "ppcc/Emit/Emitters.def"

/// The key `costs`, as docs/costs.schema.json describes it.
void putCosts(Writer &writer, const Program &program, JsonStyle style = {});
/// The head of the text of a program.
void putTextHead(Writer &writer, const Program &program);
/// The key `nodes`.
void putNodes(Writer &writer, const NodeGraphs &nodes);

} // namespace ppcc
