#include "ppcc/Editor/Editor.h"

using namespace ppcc;
using namespace ppcc::editor;

/// How long the token is that begins the text, which begins with no space.
static std::pair<TokenKind, size_t> first(StringRef text) {
  auto lengthWhile = [&](StringRef from, auto holds) {
    return text.size() - from.size() + from.take_while(holds).size();
  };
  char c = text.front();
  if (text.starts_with("//"))
    return {TokenKind::Comment,
            text.take_until([](char d) { return d == '\n'; }).rtrim().size()};
  if (llvm::isDigit(c)) {
    StringRef rest = text.drop_while(llvm::isDigit);
    // `0..M` is not a number with a point.
    if (rest.size() > 1 && rest[0] == '.' && llvm::isDigit(rest[1]))
      rest = rest.drop_front().drop_while(llvm::isDigit);
    if (!rest.empty() && llvm::toLower(rest[0]) == 'e') {
      StringRef exponent = rest.drop_front();
      if (!exponent.consume_front("-"))
        exponent.consume_front("+");
      if (!exponent.empty() && llvm::isDigit(exponent[0]))
        rest = exponent;
    }
    return {TokenKind::Number, lengthWhile(rest, isWordCharacter)};
  }
  if (isWordCharacter(c))
    return {TokenKind::Word, lengthWhile(text, isWordCharacter)};
  if (c == '"') {
    size_t end = 1;
    while (end < text.size() && text[end] != '"' && text[end] != '\n')
      end += text[end] == '\\' && end + 1 < text.size() && text[end + 1] != '\n'
                 ? 2
                 : 1;
    return {TokenKind::String,
            end < text.size() && text[end] == '"' ? end + 1 : end};
  }
  for (StringRef symbol : {"->", "..", "==", "!=", "<=", ">="})
    if (text.starts_with(symbol))
      return {TokenKind::Symbol, 2};
  // A character of several bytes is not cut.
  size_t end = 1;
  while (end < text.size() && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80)
    ++end;
  return {TokenKind::Symbol, end};
}

std::vector<Token> ppcc::editor::tokenize(StringRef text) {
  std::vector<Token> tokens;
  while (!(text = text.ltrim()).empty()) {
    auto [kind, length] = first(text);
    tokens.push_back({kind, text.take_front(length)});
    text = text.drop_front(length);
  }
  return tokens;
}

std::vector<Token> ppcc::editor::withoutComments(std::vector<Token> tokens) {
  llvm::erase_if(tokens, [](const Token &token) { return token.isComment(); });
  return tokens;
}
