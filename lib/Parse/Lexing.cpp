#include "Lexing.h"

#include "ScheduleLexer.h"

#include "llvm/ADT/StringSwitch.h"

using namespace ppcc;
using grammar::ScheduleLexer;
using llvm::StringRef;

Offsets::Offsets(uint32_t source, const SourceManager &sources)
    : sources(sources), source(source), length(sources.text(source).size()) {
  StringRef text = sources.text(source);
  for (size_t i = text.starts_with("\xEF\xBB\xBF") ? 3 : 0; i < text.size();
       ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80)
      starts.push_back(static_cast<uint32_t>(i));
}

SourceRange Offsets::range(const antlr4::Token *token) const {
  if (token->getType() == antlr4::Token::EOF)
    return loc(starts.size());
  return {loc(token->getStartIndex()), loc(token->getStopIndex() + 1)};
}

namespace {

/// Follows brackets, and the operators of each statement between them.
class NestingMeter {
public:
  /// The depth after this token.
  unsigned take(StringRef token) {
    switch (token.front()) {
    case '(':
    case '{':
      operators.push_back(0);
      ++depth;
      break;
    case ')':
    case '}':
      if (operators.size() > 1) {
        depth -= 1 + operators.back();
        operators.pop_back();
      }
      if (token.front() == '}')
        forgetOperators();
      break;
    case ';':
    case ',':
      forgetOperators();
      break;
    default:
      if (isOperator(token)) {
        ++operators.back();
        ++depth;
      }
    }
    return depth;
  }

private:
  /// At the end of a statement or an argument.
  void forgetOperators() {
    depth -= operators.back();
    operators.back() = 0;
  }

  static bool isOperator(StringRef token) {
    return llvm::StringSwitch<bool>(token)
        .Cases("+", "-", "*", "/", "%", "?", true)
        .Cases("==", "!=", "<", "<=", ">", ">=", true)
        .Cases("and", "or", "not", true)
        .Default(false);
  }

  std::vector<unsigned> operators{0};
  unsigned depth = 0;
};

} // namespace

TokenList ppcc::lex(antlr4::Lexer &lexer, const Offsets &offsets,
                    StringRef text, DiagnosticEngine &diags) {
  TokenList tokens;
  NestingMeter meter;
  SourceLoc fileStart = offsets.loc(0);
  size_t skipped = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  SourceLoc endOfUnknown;
  while (true) {
    std::unique_ptr<antlr4::Token> token = lexer.nextToken();
    SourceRange range = offsets.range(token.get());
    size_t type = token->getType();
    if (type == antlr4::Token::EOF) {
      tokens.push_back(std::move(token));
      return tokens;
    }
    StringRef spelling = text.substr(range.begin.raw - fileStart.raw + skipped,
                                     range.end.raw - range.begin.raw);
    if (type == ScheduleLexer::UNKNOWN) {
      if (range.begin != endOfUnknown) // One message for a run of them.
        diags.report<diag::UnknownCharacter>(range,
                                             fmt::format("`{}`", spelling));
      endOfUnknown = range.end;
      continue;
    }
    if (type == ScheduleLexer::OPEN_STRING) {
      diags.report<diag::UnterminatedString>(range);
      continue;
    }
    if (meter.take(spelling) > maxNesting) {
      diags.report<diag::TooDeep>(range, maxNesting);
      return {};
    }
    tokens.push_back(std::move(token));
  }
}
