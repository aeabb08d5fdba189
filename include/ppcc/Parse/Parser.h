// From text to tree. The only door to the ANTLR grammar.
#pragma once

#include "ppcc/AST/AST.h"
#include "ppcc/Basic/Diagnostics.h"

#include <optional>

namespace ppcc {

/// Parses a file of the SourceManager. Reports every syntax error that recovery
/// can reach and gives nothing when there was one. The tree's strings live as
/// long as `sources` and `context`. O(bytes); nesting is bounded.
std::optional<ast::File> parseFile(uint32_t source,
                                   const SourceManager &sources,
                                   ast::Context &context,
                                   DiagnosticEngine &diags);

} // namespace ppcc
