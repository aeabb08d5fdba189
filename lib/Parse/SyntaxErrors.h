// Says in our words what ANTLR found wrong.
#pragma once

#include "Lexing.h"

namespace ppcc {

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
