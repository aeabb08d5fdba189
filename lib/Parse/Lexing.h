// Turns the text of a file into ANTLR tokens that the parser can take without
// risk, and says what is wrong with them in our words.
#pragma once

#include "antlr4-runtime.h"
#include "ppcc/Basic/Diagnostics.h"

namespace ppcc {

/// The file that tokens come from. ANTLR counts in code points, we in bytes.
class TokenOrigin {
public:
  TokenOrigin(uint32_t source, const SourceManager &sources,
              antlr4::TokenSource &lexer);

  SourceLoc loc(size_t codePoint) const {
    return begin.advanced(codePoint < starts.size() ? starts[codePoint]
                                                    : text.size());
  }

  const StringRef text;
  const SourceLoc begin;
  antlr4::TokenSource &lexer;

private:
  std::vector<uint32_t> starts; ///< The byte of each code point.
};

/// A token that knows its bytes; a third of the size of ANTLR's.
class SourceToken final : public antlr4::Token {
public:
  SourceToken(const TokenOrigin &origin, size_t index,
              const antlr4::Token &token);

  StringRef text() const {
    return origin.text.slice(range.begin.raw - origin.begin.raw,
                             range.end.raw - origin.begin.raw);
  }

  /// What stands between this and a later one.
  StringRef textUpTo(const SourceToken &later) const {
    return origin.text.slice(range.end.raw - origin.begin.raw,
                             later.range.begin.raw - origin.begin.raw);
  }

  std::string getText() const override { return text().str(); }
  size_t getType() const override { return type; }
  void setType(size_t newType) { type = newType; }
  size_t getLine() const override { return line; }
  /// ANTLR asks for that of each missing token, and only passes it on.
  size_t getCharPositionInLine() const override { return 0; }
  /// O(column).
  size_t column() const {
    StringRef before =
        origin.text.take_front(range.begin.raw - origin.begin.raw);
    return before.size() - (before.rfind('\n') + 1);
  }
  size_t getChannel() const override { return 0; }
  size_t getTokenIndex() const override { return index; }
  size_t getStartIndex() const override { return range.begin.raw; }
  size_t getStopIndex() const override { return range.end.raw; }
  antlr4::TokenSource *getTokenSource() const override { return &origin.lexer; }
  antlr4::CharStream *getInputStream() const override { return nullptr; }
  std::string toString() const override { return getText(); }

  const SourceRange range; ///< Empty at the end of the file.

private:
  const TokenOrigin &origin;
  uint32_t index, line;
  size_t type; ///< Token::EOF, too.
};

/// Of a token of lex().
inline SourceRange rangeOf(const antlr4::Token *token) {
  return static_cast<const SourceToken *>(token)->range;
}
inline StringRef textOf(const antlr4::Token *token) {
  return static_cast<const SourceToken *>(token)->text();
}

using TokenList = std::vector<std::unique_ptr<antlr4::Token>>;

/// The largest nesting of brackets and operators that the parser and all later
/// phases must bear.
inline constexpr unsigned maxNesting = 256;

/// Lexes the file. Reports what no token begins with, and nesting that is too
/// deep: then the list is empty.
TokenList lex(antlr4::Lexer &lexer, const TokenOrigin &origin,
              DiagnosticEngine &diags);

/// Rules that are a list in brackets (or the whole file): recovery stays inside
/// them, and they go on without what is wrong in them.
bool isList(size_t rule);

/// ANTLR's error strategy with our diagnostics, and a recovery that knows where
/// statements end: it goes on after the next semicolon or block, so that each
/// mistake is one message.
class SyntaxErrors : public antlr4::DefaultErrorStrategy {
public:
  explicit SyntaxErrors(DiagnosticEngine &diags) : diags(diags) {}

  /// What may stand at a place.
  struct Expected {
    std::string text;
    std::string symbol = {}; ///< What probably is missing, if that is known.
  };

  void sync(antlr4::Parser *parser) override;
  void recover(antlr4::Parser *parser, std::exception_ptr error) override;

protected:
  antlr4::Token *singleTokenDeletion(antlr4::Parser *parser) override;
  bool singleTokenInsertion(antlr4::Parser *parser) override;
  antlr4::Token *getMissingSymbol(antlr4::Parser *parser) override;
  void
  reportNoViableAlternative(antlr4::Parser *parser,
                            const antlr4::NoViableAltException &e) override;
  void reportInputMismatch(antlr4::Parser *parser,
                           const antlr4::InputMismatchException &e) override;
  void reportUnwantedToken(antlr4::Parser *parser) override;
  void reportMissingToken(antlr4::Parser *parser) override;

private:
  void unexpected(antlr4::Parser *parser, antlr4::Token *token,
                  const antlr4::misc::IntervalSet &expected);
  DiagnosticEngine::Builder expectedAt(SourceLoc at, const Expected &wanted);

  DiagnosticEngine &diags;
};

} // namespace ppcc
