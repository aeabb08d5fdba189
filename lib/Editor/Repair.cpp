#include "ppcc/Editor/Repair.h"

#include "ppcc/Editor/Tokens.h"

using namespace ppcc;
using namespace ppcc::editor;

static bool endsStatement(const Token &token) {
  return token.is(";") || token.is("{") || token.is("}");
}

/// Behind the bracket that closes the one at `at`, or all tokens.
static size_t afterBracket(ArrayRef<Token> tokens, size_t at) {
  unsigned depth = 0;
  for (; at != tokens.size(); ++at)
    if (tokens[at].is("{"))
      ++depth;
    else if (tokens[at].is("}") && --depth == 0)
      return at + 1;
  return at;
}

std::string ppcc::editor::blankOutError(StringRef text, size_t place) {
  std::vector<Token> tokens = withoutComments(tokenize(text));
  std::string left = text.str();
  auto offset = [&](const char *at) { return size_t(at - text.begin()); };
  auto blank = [&](size_t from, size_t to) {
    for (const Token &token : ArrayRef(tokens).slice(from, to - from))
      std::fill_n(left.begin() + offset(token.text.begin()), token.text.size(),
                  ' ');
  };
  auto isBefore = [&](const Token &token) {
    return offset(token.text.end()) < place;
  };
  size_t at = llvm::partition_point(tokens, isBefore) - tokens.begin();
  if (at == tokens.size()) {
    int64_t depth = 0;
    for (const Token &token : tokens)
      depth += token.is("{") ? 1 : token.is("}") ? -1 : 0;
    if (depth > 0)
      return left + std::string(depth, '}');
    if (tokens.empty())
      return left;
    at -= 1;
  }
  size_t begin = at, end = at;
  while (begin != 0 && !endsStatement(tokens[begin - 1]))
    --begin;
  while (end != tokens.size() && !endsStatement(tokens[end]))
    ++end;
  if (begin == end) { // A bracket or a semicolon too many.
    blank(at, at + 1);
    return left;
  }
  if (end == tokens.size() || tokens[end].is("}")) {
    blank(begin, end);
  } else if (tokens[end].is(";")) {
    blank(begin, end + 1);
  } else if (tokens[begin].is("schedule") || tokens[begin].is("block") ||
             tokens[begin].is("rule")) { // Without parameters.
    size_t open = begin;
    while (open != end && !tokens[open].is("("))
      ++open;
    if (open == end)
      blank(begin, afterBracket(tokens, end));
    else
      blank(open + 1, tokens[end - 1].is(")") ? end - 1 : end);
  } else {
    // The body of a loop or a condition is read all the same.
    constexpr StringRef head = "if true";
    size_t from = offset(tokens[begin].text.begin());
    if (tokens[begin].isWord() &&
        from + head.size() <= offset(tokens[end].text.begin())) {
      blank(begin, end);
      llvm::copy(head, left.begin() + from);
    } else {
      blank(begin, afterBracket(tokens, end));
    }
  }
  return left;
}
