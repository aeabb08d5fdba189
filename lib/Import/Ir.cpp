// Reads the program from the text that ppcc-opt reads.
#include "Importers.h"

#include "ppcc/IR/Text.h"

using namespace ppcc;

bool ppcc::beginsIr(llvm::StringRef text) {
  return text.consume_front("program") &&
         (text.empty() || llvm::StringRef(" \t\r\n\"{").contains(text[0]));
}

std::optional<Program> ppcc::importIr(ImportContext &context) {
  return parseProgram(context.file, context.sources, context.diags);
}
