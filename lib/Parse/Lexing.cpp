#include "Lexing.h"

#include "ScheduleLexer.h"
#include "ppcc/Basic/Diagnostics/Syntax.h"

using namespace ppcc;
using grammar::ScheduleLexer;

TokenOrigin::TokenOrigin(uint32_t source, const SourceManager &sources,
                         antlr4::TokenSource &lexer)
    : text(sources.text(source)), begin(sources.loc(source, 0)), lexer(lexer) {
  for (size_t i = text.starts_with("\xEF\xBB\xBF") ? 3 : 0; i < text.size();
       ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80)
      starts.push_back(uint32_t(i));
}

static SourceRange rangeIn(const TokenOrigin &origin,
                           const antlr4::Token &token) {
  if (token.getType() == antlr4::Token::EOF)
    return origin.loc(SIZE_MAX);
  return {origin.loc(token.getStartIndex()),
          origin.loc(token.getStopIndex() + 1)};
}

SourceToken::SourceToken(const TokenOrigin &origin, size_t index,
                         const antlr4::Token &token)
    : range(rangeIn(origin, token)), origin(origin), index(uint32_t(index)),
      line(uint32_t(token.getLine())), type(token.getType()) {}

namespace {

/// Follows brackets, and the operators of each statement between them.
class NestingMeter {
public:
  /// The depth after this token.
  unsigned take(StringRef token) {
    bool isIndex = token == "[" && isAfterIndex; // Of what has one already.
    isAfterIndex = token == "]";
    switch (token.front()) {
    case '(':
    case '[':
    case '{':
      operators.back() += isIndex;
      depth += isIndex;
      operators.push_back(0);
      ++depth;
      break;
    case ')':
    case ']':
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
  bool isAfterIndex = false;
};

/// Reports a character that no token begins with. What is meant, if it is of
/// other languages or typeset; else nothing.
StringRef reportUnknown(const SourceToken &token, const TokenOrigin &origin,
                        DiagnosticEngine &diags) {
  auto builder = diags.report<diag::UnknownCharacter>(
      token.range, fmt::format("`{}`", token.text()));
  StringRef meant = llvm::StringSwitch<StringRef>(token.text())
                        .Case("!", "not")
                        .Case("&", "and")
                        .Case("|", "or")
                        .Cases("\u2212", "\u2013", "-") // Minus, en dash.
                        .Case("#", "//")
                        .Default("");
  if (meant.empty())
    return meant;
  // `a&&b` is one mistake; the word that stands for it touches no other.
  std::string by = meant.str();
  auto isOfName = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  SourceRange range = token.range;
  if (llvm::isAlpha(meant.front())) {
    size_t at = range.begin.raw - origin.begin.raw;
    StringRef before = origin.text.take_front(at),
              after = origin.text.drop_front(at + token.text().size());
    size_t more =
        after.take_while([&](char c) { return c == token.text()[0]; }).size();
    range.end = range.end.advanced(more);
    if (!before.empty() && isOfName(before.back()))
      by = " " + by;
    if (more != after.size() && isOfName(after[more]))
      by += " ";
    if (more != 0 && meant == "not") // `!!a` is `a`.
      return builder.note({}, "did you mean `{}`?", meant), meant;
  }
  builder.note({}, "did you mean `{}`?", meant).replace(range, by);
  return meant;
}

} // namespace

TokenList ppcc::lex(antlr4::Lexer &lexer, const TokenOrigin &origin,
                    DiagnosticEngine &diags) {
  TokenList tokens;
  NestingMeter meter;
  SourceLoc endOfUnknown;
  while (true) {
    auto token = std::make_unique<SourceToken>(origin, tokens.size(),
                                               *lexer.nextToken());
    SourceRange range = token->range;
    size_t type = token->getType();
    if (type == antlr4::Token::EOF) {
      tokens.push_back(std::move(token));
      return tokens;
    }
    StringRef text = token->text();
    if (type == ScheduleLexer::UNKNOWN) {
      bool isFirst = range.begin != endOfUnknown; // Of a run: one message.
      text = isFirst ? reportUnknown(*token, origin, diags) : "";
      endOfUnknown = range.end;
      if (text == "//") { // The comment is left out with its line.
        antlr4::CharStream *input = lexer.getInputStream();
        auto *machine = lexer.getInterpreter<antlr4::atn::LexerATNSimulator>();
        while (input->LA(1) != antlr4::IntStream::EOF && input->LA(1) != '\n')
          machine->consume(input);
        continue;
      }
      if (text.empty())
        continue;
      token->setType(lexer.getTokenType(fmt::format("'{}'", text)));
    }
    if (type == ScheduleLexer::OPEN_STRING) {
      diags.report<diag::UnterminatedString>(range);
      continue;
    }
    if (meter.take(text) > maxNesting) {
      diags.report<diag::TooDeep>(range, maxNesting);
      return {};
    }
    tokens.push_back(std::move(token));
  }
}
