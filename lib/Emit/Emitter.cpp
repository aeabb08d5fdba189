// The table of formats.
#include "Emitters.h"

#include "ppcc/IR/Loops.h"

using namespace ppcc;

static constexpr Emitter table[] = {
#define EMITTER(Name, Function, Programs, Summary)                             \
  {Name, Function, Emitter::Programs, Summary},
#include "ppcc/Emit/Emitters.def"
#undef EMITTER
};

ArrayRef<Emitter> ppcc::emitters() { return table; }

bool ppcc::emitProgram(const Emitter &emitter, const Program &program,
                       raw_ostream &out, EmitContext &context) {
  if (program.loops().empty() || emitter.programs != Emitter::Flat)
    return emitter.emit(program, out, context);
  return emitter.emit(unrolled(program), out, context);
}

const Emitter *ppcc::findEmitter(StringRef name) {
  for (const Emitter &emitter : table)
    if (emitter.name == name)
      return &emitter;
  return nullptr;
}
