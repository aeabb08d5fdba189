#include "Sites.h"
#include "ppcc/Basic/Diagnostics/Instance.h"

using namespace ppcc;
using namespace ppcc::sema;

/// Places that actions may come from; each way of calls that leads to one
/// counts.
constexpr uint32_t maxSites = 1u << 22;

SiteId ppcc::addSite(Program &program, const SourceManager &sources,
                     SourceRange range, SiteId caller) {
  Position at = sources.position(range.begin);
  Head &head = program.editHead();
  return head.addSite({head.file(at.file), at.line, at.column, caller});
}

PhaseId SiteTable::phase(const ast::PhaseStmt &stmt) {
  PhaseId &known = phaseOf[stmt.id];
  if (known.value == 0) {
    if (program.phases().size() > Program::maxPhases) {
      evaluator.refuse<diag::OutOfRange>(
          stmt.name.range, "the number of phases", program.phases().size(), 0,
          Program::maxPhases);
      return PhaseId();
    }
    known = program.editHead().phase(stmt.name.text);
  }
  return known;
}

SiteId SiteTable::find(const ast::Stmt *stmt) {
  SiteId &known = sites[{stmt->id, caller.value}];
  if (known.value == 0) {
    if (program.sites().size() > maxSites) {
      diags.report<diag::OutOfRange>(
          stmt->range, "the number of places with their calls of blocks",
          program.sites().size(), 0, maxSites);
      isFull = true;
      return SiteId();
    }
    known = addSite(program, sources, stmt->range, caller);
  }
  siteOf[stmt->id] = {caller, known};
  return known;
}
