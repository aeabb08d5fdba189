// From text to tree. The only door to the ANTLR grammar.
#pragma once

#include "ppcc/AST/AST.h"
#include "ppcc/Basic/Diagnostics.h"

namespace ppcc {

/// Parses a file of the SourceManager. Reports every syntax error that recovery
/// can reach. Where there is one, gives nothing or, if `keepsRest`, the tree of
/// all statements but those that are wrong. The tree's strings live as long as
/// `sources` and `context`. O(bytes); nesting is bounded.
std::optional<ast::File>
parseFile(uint32_t source, const SourceManager &sources, ast::Context &context,
          DiagnosticEngine &diags, bool keepsRest = false);

/// The words that the grammar gives a meaning, in no order.
std::vector<StringRef> keywords();

/// Reads a layout, like `E|(t|)*3,m|m||L`: the letters of the layers of each
/// stage. A bar ends a stage; `*n` repeats a letter, a bar or a group; commas
/// and blanks mean nothing (the notation of Megatron-LM's
/// --pipeline-model-parallel-layout). `begin` is the place of its first byte.
/// Reports what is wrong, and layouts of more stages or layers than a pipe may
/// have.
std::optional<std::vector<std::string>>
parseLayout(StringRef text, SourceLoc begin, DiagnosticEngine &diags);

} // namespace ppcc
