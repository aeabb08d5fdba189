// Writes the program as text that parses back.
#include "Emitters.h"

using namespace ppcc;

void ppcc::emitIr(const Program &program, raw_ostream &out,
                  EmitContext &context) {
  printProgram(program, out, context.options.print);
}
