// Leads from the actions of a program to the source text that caused them.
#include "ppcc/IR/Place.h"

using namespace ppcc;

Place ppcc::placeOf(const Program &program, SiteId siteId,
                    SourceManager &sources) {
  if (siteId == SiteId())
    return {};
  const Site &site = program.sites()[siteId.value];
  const std::string &name = program.files()[site.file].name;
  if (SourceLoc at = sources.find(name, site.line, site.column); at.valid())
    return at;
  return Place(fmt::format("{}:{}:{}", name, site.line, site.column));
}

Place ppcc::placeOf(const Program &program, ActionId id,
                    SourceManager &sources) {
  return placeOf(program, program[id].site, sources);
}

Place ppcc::placeOfStage(const Program &program, PipeId pipe, StageId stage,
                         SourceManager &sources) {
  for (ActionId row : program.rows())
    if (Action action = program[row];
        action.pipe == pipe && action.stage == stage)
      return placeOf(program, action.site, sources);
  return {};
}

void ppcc::noteCallers(DiagnosticEngine::Builder &diagnostic,
                       const Program &program, SiteId site,
                       SourceManager &sources) {
  constexpr unsigned maxNotes = 8;
  SiteId caller = program.sites()[site.value].caller;
  for (unsigned i = 0; i != maxNotes && caller != SiteId(); ++i) {
    diagnostic.note(placeOf(program, caller, sources),
                    "in the block called here");
    caller = program.sites()[caller.value].caller;
  }
}
