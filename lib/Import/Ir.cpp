// Reads the program from the text that ppcc-opt reads.
#include "Importers.h"

#include "ppcc/Basic/Diagnostics/Import.h"
#include "ppcc/IR/Loops.h"
#include "ppcc/IR/Text.h"

using namespace ppcc;

bool ppcc::beginsIr(StringRef text) {
  return text.consume_front("program") &&
         (text.empty() || StringRef(" \t\r\n\"{").contains(text[0]));
}

std::optional<Program> ppcc::importIr(ImportContext &context) {
  auto program = parseProgram(context.file, context.sources, context.diags);
  if (!program || program->loops().empty())
    return program;
  if (unrolledSize(*program) > context.options.maxActions)
    return context.diags.report<diag::ImportTooMany>(
        {}, context.options.maxActions, "actions");
  return unrolled(*program);
}
