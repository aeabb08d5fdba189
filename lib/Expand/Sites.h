// Where actions come from: the places and phases of a program.
#pragma once

#include "ppcc/IR/Program.h"
#include "ppcc/Model/Instance.h"

namespace ppcc {

/// A new site of a program, in the call of a block or a rule.
SiteId addSite(Program &program, const SourceManager &sources,
               SourceRange range, SiteId caller);

/// Numbers the places, and the calls of blocks that lead to them, as they come.
class SiteTable {
public:
  SiteTable(size_t numStmts, Program &program, sema::Evaluator &evaluator,
            const SourceManager &sources, DiagnosticEngine &diags)
      : program(program), evaluator(evaluator), sources(sources), diags(diags),
        phaseOf(numStmts), siteOf(numStmts) {}

  PhaseId phase(const ast::PhaseStmt &stmt);
  /// The site of a statement in the block call that is being laid out.
  SiteId site(const ast::Stmt *stmt) {
    const SiteCache &last = siteOf[stmt->id];
    return last.site.value != 0 && last.caller == caller ? last.site
                                                         : find(stmt);
  }

  SiteId caller;       ///< The call that is being laid out.
  bool isFull = false; ///< There were too many, which was reported.

private:
  struct SiteCache {
    SiteId caller, site;
  };
  SiteId find(const ast::Stmt *stmt);

  Program &program;
  sema::Evaluator &evaluator;
  const SourceManager &sources;
  DiagnosticEngine &diags;
  std::vector<PhaseId> phaseOf;
  std::vector<SiteCache> siteOf;
  DenseMap<std::pair<uint32_t, uint32_t>, SiteId> sites;
};

} // namespace ppcc
