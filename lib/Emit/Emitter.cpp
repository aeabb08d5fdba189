// The table of formats.
#include "Emitters.h"
#include "ppcc/IR/Loops.h"

using namespace ppcc;

ArrayRef<Emitter> ppcc::emitters() {
  using enum Emitter::OptionGroup;
  static constexpr Emitter table[] = {
#define EMITTER(Name, Extension, Function, Programs, Reads, Summary)           \
  {Name, Extension, Function, Emitter::Programs, Reads, Summary},
#include "ppcc/Emit/Emitters.def"
  };
  return table;
}

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
  return findBy(emitters(), name, &Emitter::name);
}
