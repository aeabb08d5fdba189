// Tells programs from schedules.
#include "ProgramInput.h"

#include "llvm/Support/Path.h"

using namespace ppcc;
using llvm::StringRef;

static bool isScheduleName(StringRef fileName) {
  return llvm::sys::path::extension(fileName) == ".pp";
}

const Importer *ppcc::programFormat(const Options &options, StringRef fileName,
                                    StringRef text) {
  if (!options.from.empty())
    return findImporter(options.from);
  if (isScheduleName(fileName))
    return nullptr;
  const Importer *byName = importerOfName(fileName);
  return byName ? byName : importerOfText(text);
}

StringRef ppcc::misusedOption(const Options &options, bool isProgram) {
  struct Rule {
    bool isGiven, forProgram;
    StringRef text;
  };
  const Rule rules[] = {
      {!options.params.empty() && !options.sharesParams, false,
       "-D gives parameters of a schedule values; the input is a program"},
      {!options.layout.empty(), false,
       "--layout gives the stages of a schedule layers; the input is a "
       "program"},
      {!options.schedule.empty(), false,
       "--schedule chooses a schedule; the input is a program"},
      {!options.rules.empty(), false,
       "--with gives a schedule rules to follow; the input is a program"},
      {options.listParams, false,
       "--list-params is for schedules; the input is a program"},
      {options.emit == "ast", false,
       "--emit=ast is for schedules; the input is a program"},
      {options.importOptions.microbatches.has_value(), true,
       "--microbatches is for programs; give the parameter of the schedule "
       "with -D"},
  };
  for (const Rule &rule : rules)
    if (rule.isGiven && rule.forProgram != isProgram)
      return rule.text;
  return "";
}

size_t ppcc::maxInputBytes(const Options &options, StringRef fileName,
                           StringRef begin) {
  bool isProgram = programFormat(options, fileName, begin) != nullptr;
  return options.maxSourceBytes.value_or(size_t(1) << (isProgram ? 31 : 20));
}
