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
  size_t errorsBefore = context.diags.errorCount();
  if (program.loops().empty() || emitter.programs != Emitter::Flat)
    emitter.emit(program, out, context);
  else
    emitter.emit(unrolled(program), out, context);
  return context.diags.errorCount() == errorsBefore;
}

const Emitter *ppcc::findEmitter(StringRef name) {
  return findBy(table, name, &Emitter::name);
}
