// Walks over the text of a program: its characters, words, numbers and strings.
#include "TextCursor.h"
#include "ppcc/Basic/Diagnostics/IR.h"
#include "ppcc/Basic/Diagnostics/Syntax.h"
#include "ppcc/Support/Printable.h"

using namespace ppcc;

bool TextCursor::expected(StringRef what) {
  return diags.report<diag::IrExpected>(here(), what);
}

/// Reports what is no number, or too large.
std::optional<uint32_t> TextCursor::noNumber(StringRef digits, StringRef what,
                                             uint32_t max) {
  if (digits.empty())
    expected(fmt::format("a number: {}", what));
  else
    diags.report<diag::IrNumberTooLarge>(range(digits), digits.take_front(40),
                                         what, max);
  return std::nullopt;
}

std::optional<std::string> TextCursor::string(StringRef what) {
  if (!peek('"')) {
    expected(fmt::format("a string: {}", what));
    return std::nullopt;
  }
  const char *from = at++;
  std::string value;
  for (; at != end && *at != '\n'; ++at) {
    char c = *at;
    if (c == '"') {
      ++at;
      return value;
    }
    if (c != '\\' || at + 1 == end || at[1] == '\n') {
      value += c;
      continue;
    }
    StringRef rest(at + 1, end - at - 1);
    if (auto character = takeEscape(rest))
      value += *character;
    else
      diags.report<diag::BadEscape>(range(StringRef(at, 2)),
                                    StringRef(at + 1, 1));
    at = rest.data() - 1;
  }
  return diags.report<diag::UnterminatedString>(rangeFrom(from));
}

std::optional<std::string> TextCursor::wordOrString(StringRef what) {
  if (peek('"'))
    return string(what);
  StringRef word = peekWord();
  if (word.empty()) {
    expected(what);
    return std::nullopt;
  }
  take(word);
  return word.str();
}

void TextCursor::skipPastBrace() {
  while (at != end && *at != '}') {
    skipSpace();
    if (at != end && *at != '}')
      ++at;
  }
  accept("}");
}

void TextCursor::skipItem() {
  while (inKeyLine() && at != end && *at != '\n' && *at != '}')
    ++at;
}
