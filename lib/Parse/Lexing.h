// Turns the text of a file into ANTLR tokens that the parser can take without
// risk.
#pragma once

#include "ppcc/Basic/Diagnostics.h"

#include "antlr4-runtime.h"

#include <vector>

namespace ppcc {

/// Translates ANTLR's code points to bytes of a source file.
class Offsets {
public:
  Offsets(uint32_t source, const SourceManager &sources);

  SourceLoc loc(size_t codePoint) const {
    return sources.loc(source,
                       codePoint < starts.size() ? starts[codePoint] : length);
  }
  SourceRange range(const antlr4::Token *token) const;

private:
  const SourceManager &sources;
  uint32_t source;
  size_t length;
  std::vector<uint32_t> starts; ///< The byte of each code point.
};

using TokenList = std::vector<std::unique_ptr<antlr4::Token>>;

/// The largest nesting of brackets and operators that the parser and all later
/// phases must bear.
inline constexpr unsigned maxNesting = 256;

/// Lexes the file. Reports what no token begins with, and nesting that is too
/// deep: then the list is empty.
TokenList lex(antlr4::Lexer &lexer, const Offsets &offsets,
              llvm::StringRef text, DiagnosticEngine &diags);

} // namespace ppcc
