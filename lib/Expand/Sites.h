// Where actions come from: the places and phases of a program.
#pragma once

#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Model/Instance.h"

namespace ppcc {

/// A new site of a program, in the call of a block or a rule.
inline SiteId addSite(Program &program, const SourceManager &sources,
                      SourceRange range, SiteId caller) {
  Position at = sources.position(range.begin);
  Head &head = program.editHead();
  return head.addSite({head.file(at.file), at.line, at.column, caller});
}

/// Numbers the places, and the calls of blocks that lead to them, as they come.
class SiteTable {
public:
  SiteTable(size_t numStmts, Program &program, sema::Evaluator &evaluator,
            const SourceManager &sources, DiagnosticEngine &diags)
      : program(program), evaluator(evaluator), sources(sources), diags(diags),
        phaseOf(numStmts), siteOf(numStmts) {}

  PhaseId phase(const ast::PhaseStmt &stmt) {
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
  /// The site of a statement in the block call that is being laid out.
  SiteId site(const ast::Stmt *stmt) {
    const SiteCache &last = siteOf[stmt->id];
    return last.site.value != 0 && last.caller == caller ? last.site
                                                         : find(stmt);
  }

  SiteId caller;       ///< The call that is being laid out.
  bool isFull = false; ///< There were too many, which was reported.

private:
  /// Places that actions may come from; each way of calls that leads to one
  /// counts.
  static constexpr uint32_t maxSites = 1u << 22;

  struct SiteCache {
    SiteId caller, site;
  };
  SiteId find(const ast::Stmt *stmt) {
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

  Program &program;
  sema::Evaluator &evaluator;
  const SourceManager &sources;
  DiagnosticEngine &diags;
  std::vector<PhaseId> phaseOf;
  std::vector<SiteCache> siteOf;
  DenseMap<std::pair<uint32_t, uint32_t>, SiteId> sites;
};

} // namespace ppcc
