#include "Lexing.h"

#include "ScheduleLexer.h"
#include "ScheduleParser.h"
#include "ppcc/Basic/Diagnostics/Syntax.h"
#include "ppcc/Parse/Parser.h"

using namespace ppcc;
using antlr4::Token;
using antlr4::misc::IntervalSet;
using grammar::ScheduleLexer;
using grammar::ScheduleParser;

/// The spelling of a fixed token (`repeat`, `;`), or nothing for names, numbers
/// and strings.
static std::string literal(const antlr4::Parser *parser, size_t type) {
  std::string name(parser->getVocabulary().getLiteralName(type));
  return name.size() > 2 ? name.substr(1, name.size() - 2) : "";
}

static bool contains(const IntervalSet &set, size_t type) {
  return set.contains(type);
}

static bool isWord(StringRef text) {
  return !text.empty() && (llvm::isAlpha(text[0]) || text[0] == '_');
}

/// In the terms of the language: an expression and not its thirteen first
/// tokens.
static SyntaxErrors::Expected describe(const antlr4::Parser *parser,
                                       const IntervalSet &expected) {
  std::vector<std::string> texts;
  std::string symbol;
  bool expression = contains(expected, ScheduleLexer::INT) &&
                    contains(expected, ScheduleLexer::FLOAT);
  unsigned words = 0, operators = 0;
  bool isBehind = llvm::any_of(expected.toList(), [&](ssize_t type) {
    return type != ssize_t(Token::EOF) && literal(parser, type) == "and";
  });
  static constexpr StringRef binary[] = {
      "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "?"};
  static constexpr StringRef first[] = {"(",     "-",    "not",  "[",
                                        "ranks", "true", "false"};
  for (ssize_t type : expected.toList()) {
    if (type == ssize_t(Token::EOF)) {
      texts.push_back("the end of the file");
      continue;
    }
    std::string text = literal(parser, type);
    if (type == ScheduleLexer::ID)
      expression ? void() : texts.push_back("a name");
    else if (type == ScheduleLexer::INT)
      texts.push_back(expression ? "an expression" : "a number");
    else if (type == ScheduleLexer::STRING)
      texts.push_back("a string");
    else if (text == "and" || text == "or" ||
             (!expression && llvm::is_contained(binary, text)) ||
             (text == "[" && isBehind))
      ++operators;
    else if (!text.empty() &&
             !(expression && llvm::is_contained(first, text))) {
      words += isWord(text);
      if (texts.empty() && !isWord(text))
        symbol = text;
      texts.push_back("`" + text + "`");
    }
  }
  if (texts.empty() && operators)
    texts.push_back("an operator");
  // At the start of a statement or declaration almost every keyword may stand.
  if (words > 4) {
    llvm::erase_if(texts, [](StringRef text) {
      return text == "a name" ||
             (text.starts_with("`") && isWord(text.drop_front()));
    });
    texts.insert(texts.begin(), contains(expected, ScheduleLexer::ID)
                                    ? "a statement"
                                    : "a declaration");
    symbol.clear();
  }
  std::string last = texts.back();
  texts.pop_back();
  return {texts.empty() ? last : llvm::join(texts, ", ") + " or " + last,
          symbol};
}

static std::string found(const Token *token) {
  return token->getType() == Token::EOF ? "end of the file"
                                        : "`" + token->getText() + "`";
}

static Token *last(antlr4::Parser *parser) {
  return parser->getTokenStream()->LT(-1);
}

/// Whether the parser is right after the name of an action, or of what else
/// begins with one.
static bool isAfterName(antlr4::Parser *parser) {
  antlr4::RuleContext *context = parser->getRuleContext();
  return context->getRuleIndex() == ScheduleParser::RuleActionStmt &&
         last(parser) ==
             static_cast<ScheduleParser::ActionStmtContext *>(context)->name;
}

/// What people write who come from other languages, and what stands for it
/// here; nothing for a mistake of another kind.
static std::string foreignSyntaxHint(antlr4::Parser *parser,
                                     const Token *token) {
  std::string text = token->getText(),
              before = last(parser) ? last(parser)->getText() : "";
  size_t rule = parser->getRuleContext()->getRuleIndex();
  bool isAfterName = ::isAfterName(parser);
  auto isOneOf = [](StringRef word, ArrayRef<StringRef> words) {
    return llvm::is_contained(words, word);
  };
  if (isAfterName && isOneOf(before, {"elif", "elsif", "elseif"}))
    return "write `else if`";
  if (text == "=" && isAfterName)
    return fmt::format("`let {} = ...;` names a value once; a variable that "
                       "changes is the `i` of `for i in 0 .. n {{ }}`",
                       before);
  if (text == "=" && before == "mb")
    return "`mb: m` names the microbatch";
  if (text == "=" && isOneOf(before, {"ranks", "microbatches", "placement",
                                      "stages", "slices"}))
    return fmt::format("`{} ...;` has no `=`", before);
  if (rule == ScheduleParser::RuleForStmt && (text == "(" || text == "{"))
    return "`for i in 0 .. n { }` counts from 0 to n - 1";
  if (rule == ScheduleParser::RuleLetStmt && text == "(")
    return fmt::format("outside of `on rank`, `fn {}(x) = ...;` is a function",
                       before);
  if (rule == ScheduleParser::RuleSchedule && text == "rank")
    return "`ranks P;` is their number; `on rank r { }` holds the actions of "
           "each";
  if (rule == ScheduleParser::RuleSchedule &&
      isOneOf(text, {"limit", "latency", "bandwidth"}))
    return fmt::format("what ranks and links have stands in `cluster {{ {} = "
                       "1; }}`",
                       text);
  if (rule == ScheduleParser::RuleSchedule &&
      isOneOf(text, {"cost", "memory", "bytes", "static", "scale", "jitter"}))
    return fmt::format("what actions take stands in `model {{ {} ... }}`",
                       text);
  if (before == "rank" && text == "{")
    return "the rank has a name: `on rank r { }`";
  if (rule == ScheduleParser::RuleFile &&
      isOneOf(text, {"def", "function", "func", "class"}))
    return "`schedule NAME(P: int) { }` declares a schedule, `fn` a function";
  return "";
}

/// Where the file ends too early, the brace that is probably open: one that a
/// less indented line closes, else the last that nothing closes.
static Token *findOpenBrace(antlr4::Parser *parser) {
  antlr4::TokenStream *stream = parser->getTokenStream();
  SmallVector<std::pair<Token *, size_t>> open; // With indentation.
  size_t line = 0, indentation = 0;
  for (size_t i = 0; i < stream->size(); ++i) {
    Token *token = stream->get(i);
    bool isFirst = token->getLine() != line;
    if (isFirst) {
      line = token->getLine();
      indentation = static_cast<SourceToken *>(token)->column();
    }
    if (token->getText() == "{") {
      open.push_back({token, indentation});
    } else if (token->getText() == "}" && !open.empty()) {
      if (isFirst && indentation < open.back().second)
        return open.back().first;
      open.pop_back();
    }
  }
  return open.empty() ? nullptr : open.back().first;
}

/// Writes `(0)` for the `[0]` that begins at a token, in one statement.
static void fixBrackets(antlr4::Parser *parser, const Token *open,
                        DiagnosticEngine::Builder &builder) {
  auto *stream =
      static_cast<antlr4::BufferedTokenStream *>(parser->getTokenStream());
  stream->fill();
  unsigned depth = 0;
  for (size_t i = open->getTokenIndex(); i < stream->size(); ++i) {
    Token *token = stream->get(i);
    std::string text = token->getText();
    if (text == ";" || text == "{" || text == "}")
      return;
    depth += text == "[" ? 1 : text == "]" ? -1 : 0;
    if (depth != 0)
      continue;
    auto *begin = static_cast<const SourceToken *>(open),
         *end = static_cast<const SourceToken *>(token);
    builder.replace({rangeOf(begin).begin, rangeOf(end).end},
                    "(" + begin->textUpTo(*end).str() + ")");
    return;
  }
}

void SyntaxErrors::unexpected(antlr4::Parser *parser, Token *token,
                              const IntervalSet &expected) {
  if (diags.saturated()) { // Nothing that follows is shown.
    while (parser->getCurrentToken()->getType() != Token::EOF)
      parser->consume();
    return;
  }
  Token *before = last(parser);
  bool isAfterName = ::isAfterName(parser);
  Expected wanted = isAfterName          ? Expected{"`;` or `(`", ";"}
                    : expected.isEmpty() ? Expected{"something else"}
                                         : describe(parser, expected);
  // A line without its semicolon: the mistake is at the end of that line.
  if (before && token->getLine() > before->getLine() &&
      wanted.text.find("`;`") != std::string::npos)
    return expectedAt(rangeOf(before).end, wanted), void();
  std::vector<StringRef> words = keywords();
  std::string text = token->getText();
  // The first parameter, and that after a comma, may be absent.
  bool mayBeName =
      contains(expected, ScheduleLexer::ID) ||
      (before && (before->getText() == "(" || before->getText() == ","));
  auto instead = [&]() -> std::string {
    if (std::string foreign = foreignSyntaxHint(parser, token);
        !foreign.empty())
      return foreign;
    if (mayBeName && !isAfterName && llvm::is_contained(words, text))
      return fmt::format("`{}` is a keyword and cannot be a name", text);
    if (text == "{" && wanted.symbol == "(")
      return "parameters stand in parentheses, and `()` where there are none";
    if (text == "=")
      return "`=` assigns; `==` compares";
    if (text == "[" && isAfterName)
      return fmt::format("a chunk is given in parentheses, `{0}(0)`, and so is "
                         "a microbatch, `{0}(mb: 0)`",
                         before->getText());
    if (parser->getRuleContext()->getRuleIndex() ==
            ScheduleParser::RuleSchedule &&
        llvm::is_contained({"layer", "layers", "part", "module", "gives"},
                           text))
      return "layers and parts belong in `model { }`";
    return "";
  };
  auto builder = diags.report<diag::UnexpectedToken>(rangeOf(token),
                                                     found(token), wanted.text);
  if (std::string hint = instead(); !hint.empty()) {
    builder.note({}, "{}", hint);
    if (text == "[" && isAfterName)
      fixBrackets(parser, token, builder);
    if (text == "{" && wanted.symbol == "(")
      builder.insert(rangeOf(before).end, "()");
    return;
  }
  // `repat 3 {`: the error shows one token late. Of a word this short, like an
  // action, all others are near.
  constexpr size_t shortest = 3;
  for (Token *suspect : {token, isAfterName ? before : nullptr}) {
    if (!suspect || suspect->getType() != ScheduleLexer::ID ||
        suspect->getText().size() < shortest)
      continue;
    StringRef near = nearestName(suspect->getText(), words);
    if (!near.empty()) {
      builder.didYouMean(rangeOf(suspect), rangeOf(suspect), near.str());
      return;
    }
  }
  if (wanted.symbol == ";" && before)
    builder.insert(rangeOf(before).end, ";");
}

DiagnosticEngine::Builder SyntaxErrors::expectedAt(SourceLoc at,
                                                   const Expected &wanted) {
  auto builder =
      diags.report<diag::ExpectedToken>(SourceRange(at), wanted.text);
  if (!wanted.symbol.empty())
    builder.insert(at, wanted.symbol);
  return builder;
}

bool ppcc::isList(size_t rule) {
  using P = ScheduleParser;
  return llvm::is_contained({P::RuleFile, P::RuleSchedule, P::RuleStatements,
                             P::RulePipeItem, P::RuleSectionBody,
                             P::RuleCommItem, P::RuleActionKindItem,
                             P::RuleRuleItem},
                            rule);
}

/// Consumes up to a semicolon or a closing bracket that belongs to what is
/// around, or a whole block.
static void skipStatement(antlr4::Parser *parser) {
  for (unsigned depth = 0;
       parser->getCurrentToken()->getType() != Token::EOF;) {
    std::string text = parser->getCurrentToken()->getText();
    if (depth == 0 && (text == ";" || text == "}"))
      return;
    parser->consume();
    if (text == "{")
      ++depth;
    else if (text == "}" && --depth == 0)
      return;
  }
}

/// Of `for (i = 0; i < n; i++)`, up to the end of its line.
static void skipBrackets(antlr4::Parser *parser) {
  size_t line = parser->getCurrentToken()->getLine();
  if (parser->getCurrentToken()->getText() != "(" ||
      last(parser)->getText() != "for")
    return;
  for (unsigned depth = 0; parser->getCurrentToken()->getLine() == line &&
                           parser->getCurrentToken()->getType() != Token::EOF;
       parser->consume()) {
    std::string text = parser->getCurrentToken()->getText();
    depth += text == "(" ? 1 : text == ")" ? -1 : 0;
    if (depth == 0)
      return parser->consume(), void();
  }
}

void SyntaxErrors::sync(antlr4::Parser *parser) {
  const auto &atn = parser->getATN();
  antlr4::atn::ATNState *state = atn.states[parser->getState()];
  bool isLoop = dynamic_cast<antlr4::atn::StarLoopEntryState *>(state) ||
                dynamic_cast<antlr4::atn::StarLoopbackState *>(state);
  if (!isLoop || !isList(parser->getRuleContext()->getRuleIndex()))
    return DefaultErrorStrategy::sync(parser);
  IntervalSet expected = atn.nextTokens(state);
  while (!contains(expected, parser->getCurrentToken()->getType()) &&
         parser->getCurrentToken()->getType() != Token::EOF) {
    if (!inErrorRecoveryMode(parser)) {
      beginErrorCondition(parser);
      unexpected(parser, parser->getCurrentToken(), expected);
    }
    skipStatement(parser);
    std::string text = parser->getCurrentToken()->getText();
    if (text == ";" ||
        (text == "}" &&
         !contains(expected, parser->getCurrentToken()->getType())))
      parser->consume();
  }
}

void SyntaxErrors::recover(antlr4::Parser *parser, std::exception_ptr error) {
  auto *context =
      static_cast<antlr4::ParserRuleContext *>(parser->getRuleContext());
  size_t rule = context->getRuleIndex();
  bool isUnopenedBody = (rule == ScheduleParser::RuleStatements ||
                         rule == ScheduleParser::RuleSectionBody) &&
                        context->getStart() == parser->getCurrentToken();
  if (isList(rule) && !isUnopenedBody)
    return DefaultErrorStrategy::recover(parser, error);
  skipBrackets(parser);
  // The block after a broken condition is parsed as what it is.
  if (rule != ScheduleParser::RuleExpr ||
      parser->getCurrentToken()->getText() != "{")
    skipStatement(parser);
}

Token *SyntaxErrors::singleTokenDeletion(antlr4::Parser *parser) {
  // Brackets, semicolons and `..` carry the structure that recovery relies on.
  std::string text = parser->getCurrentToken()->getText();
  bool isForeignLoop = text == "(" && last(parser)->getText() == "for";
  return isAfterName(parser) || isForeignLoop ||
                 llvm::is_contained({"{", "}", ";", ".."}, text)
             ? nullptr
             : DefaultErrorStrategy::singleTokenDeletion(parser);
}

bool SyntaxErrors::singleTokenInsertion(antlr4::Parser *parser) {
  // In place of a missing brace begins a body, in which another may be missing.
  if (parser->getRuleContext()->depth() > int(maxNesting))
    return false;
  // What was meant is another statement: go on after it.
  return foreignSyntaxHint(parser, parser->getCurrentToken()).empty() &&
         DefaultErrorStrategy::singleTokenInsertion(parser);
}

Token *SyntaxErrors::getMissingSymbol(antlr4::Parser *parser) {
  Token *missing = DefaultErrorStrategy::getMissingSymbol(parser);
  // Without a bracket or a semicolon, a rule is complete all the same.
  if (std::string text = literal(parser, missing->getType());
      text.empty() || isWord(text))
    parser->getContext()->exception =
        std::make_exception_ptr(antlr4::InputMismatchException(parser));
  return missing;
}

void SyntaxErrors::reportNoViableAlternative(
    antlr4::Parser *parser, const antlr4::NoViableAltException &e) {
  unexpected(parser, e.getOffendingToken(), parser->getExpectedTokens());
}

void SyntaxErrors::reportInputMismatch(
    antlr4::Parser *parser, const antlr4::InputMismatchException &e) {
  unexpected(parser, e.getOffendingToken(), e.getExpectedTokens());
}

void SyntaxErrors::reportUnwantedToken(antlr4::Parser *parser) {
  if (inErrorRecoveryMode(parser))
    return;
  beginErrorCondition(parser);
  unexpected(parser, parser->getCurrentToken(), getExpectedTokens(parser));
}

void SyntaxErrors::reportMissingToken(antlr4::Parser *parser) {
  if (inErrorRecoveryMode(parser))
    return;
  beginErrorCondition(parser);
  if (isAfterName(parser) || diags.saturated())
    return unexpected(parser, parser->getCurrentToken(),
                      getExpectedTokens(parser));
  // Where the token belongs: right after the one before.
  SourceLoc at = last(parser) ? rangeOf(last(parser)).end
                              : rangeOf(parser->getCurrentToken()).begin;
  auto builder = expectedAt(at, describe(parser, getExpectedTokens(parser)));
  if (parser->getCurrentToken()->getType() == Token::EOF)
    if (Token *brace = findOpenBrace(parser))
      builder.note(rangeOf(brace), "this `{{` is probably not closed");
}
