// Leads from the actions of a program to the source text that caused them.
#include "ppcc/IR/Location.h"

using namespace ppcc;

Location ppcc::locationOf(const Program &program, SiteId siteId,
                          SourceManager &sources) {
  if (siteId == SiteId())
    return {};
  const Site &site = program.sites()[siteId.value];
  const std::string &name = program.files()[site.file].name;
  if (SourceLoc at = sources.find(name, site.line, site.column); at.valid())
    return at;
  return Location(fmt::format("{}:{}:{}", name, site.line, site.column));
}

Location ppcc::locationOf(const Program &program, ActionId id,
                          SourceManager &sources) {
  return locationOf(program, program[id].site, sources);
}

Location ppcc::locationOfStage(const Program &program, PipeId pipe,
                               StageId stage, SourceManager &sources) {
  for (ActionId row : program.rows())
    if (Action action = program[row];
        action.pipe == pipe && action.stage == stage)
      return locationOf(program, action.site, sources);
  return {};
}

void ppcc::noteCallers(DiagnosticEngine::Builder &diagnostic,
                       const Program &program, SiteId site,
                       SourceManager &sources) {
  constexpr unsigned maxNotes = 8;
  SiteId caller = program.sites()[site.value].caller;
  for (unsigned i = 0; i != maxNotes && caller != SiteId(); ++i) {
    diagnostic.note(locationOf(program, caller, sources),
                    "in the block called here");
    caller = program.sites()[caller.value].caller;
  }
}
