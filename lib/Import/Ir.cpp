// Reads the program from the text that ppcc-opt reads.
#include "Importers.h"

#include "ppcc/Basic/Diagnostics/Import.h"
#include "ppcc/IR/Loops.h"
#include "ppcc/IR/Text.h"
#include "ppcc/Import/Families.h"

using namespace ppcc;

bool ppcc::beginsIr(StringRef text) {
  return text.consume_front("program") &&
         (text.empty() || StringRef(" \t\r\n\"{").contains(text[0]));
}

std::optional<Program> ppcc::importIr(ImportContext &context) {
  if (hasFamilies(context.file, context.sources))
    return importFamilies(context);
  auto program = parseProgram(context.file, context.sources, context.diags);
  if (!program || program->loops().empty())
    return program;
  if (unrolledSize(*program) > context.options.maxActions)
    return context.diags.report<diag::ImportTooMany>(
        {}, context.options.maxActions, "actions");
  return unrolled(*program);
}
