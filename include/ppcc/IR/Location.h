// Leads from the actions of a program to the source text that caused them.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/IR/Program.h"

namespace ppcc {

/// The place of `site`: in its file when that can be read, else the words
/// `file:line:column`.
Location locationOf(const Program &program, SiteId site,
                    SourceManager &sources);

/// The place of a row.
Location locationOf(const Program &program, ActionId id,
                    SourceManager &sources);

/// The place of the first row of a stage; none when it has no row. O(rows).
Location locationOfStage(const Program &program, PipeId pipe, StageId stage,
                         SourceManager &sources);

/// Adds a note for each call of a block that led to `site`, innermost first, up
/// to a limit.
void noteCallers(DiagnosticEngine::Builder &diagnostic, const Program &program,
                 SiteId site, SourceManager &sources);

} // namespace ppcc
