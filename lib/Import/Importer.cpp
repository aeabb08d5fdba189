// The table of formats.
#include "Importers.h"
#include "ppcc/Basic/Diagnostics/Import.h"

#include "llvm/Support/Path.h"

using namespace ppcc;

static constexpr Importer table[] = {
#define IMPORTER(Name, Extensions, Begins, Read, Summary)                      \
  {Name, Extensions, Begins, Read, Summary},
#include "ppcc/Import/Importers.def"
};

ArrayRef<Importer> ppcc::importers() { return table; }

const Importer *ppcc::findImporter(StringRef name) {
  return findBy(table, name, &Importer::name);
}

const Importer *ppcc::importerOfName(StringRef fileName) {
  StringRef extension = llvm::sys::path::extension(fileName);
  if (!extension.consume_front("."))
    return nullptr;
  for (const Importer &importer : table)
    for (StringRef known : llvm::split(importer.extensions, ' '))
      if (known.equals_insensitive(extension))
        return &importer;
  return nullptr;
}

const Importer *ppcc::importerOfText(StringRef text) {
  text = withoutMark(text).ltrim();
  while (text.starts_with("//"))
    text = text.drop_until([](char c) { return c == '\n'; }).ltrim();
  for (const Importer &importer : table)
    if (importer.begins(text))
      return &importer;
  return nullptr;
}

std::optional<Program> ppcc::importProgram(const Importer &importer,
                                           ImportContext &context) {
  auto program = importer.read(context);
  if (!program)
    return std::nullopt;
  uint64_t found = program->totalMicrobatches();
  if (context.options.microbatches && *context.options.microbatches != found)
    return context.diags.report<diag::ImportMicrobatchCount>(
        Location(context.sources.name(context.file).str()), found,
        *context.options.microbatches);
  return program;
}

bool ppcc::beginsNever(StringRef text) { return false; }
