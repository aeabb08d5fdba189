// Walks over the text of a program: its characters, words, numbers and strings.
#include "TextReader.h"
#include "ppcc/Basic/Diagnostics/Syntax.h"
#include "ppcc/Support/Printable.h"

using namespace ppcc;

/// Reports what is no number, or too large.
void TextReader::noNumber(StringRef digits, StringRef what, uint32_t max) {
  if (digits.empty())
    expected(fmt::format("a number: {}", what));
  else
    refuse<diag::IrNumberTooLarge>(range(digits), digits.take_front(40), what,
                                   max);
}

std::string TextReader::string(StringRef what) {
  if (!peek('"') || !isOk) {
    expected(fmt::format("a string: {}", what));
    return "";
  }
  const char *from = at++;
  std::string value;
  for (; at != end && *at != '\n'; ++at) {
    char c = *at;
    if (c == '"') {
      ++at;
      if (StringRef(value).contains('\0')) // A name of C++ ends there.
        expected(rangeFrom(from), "a string without the character NUL");
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
  refuse<diag::UnterminatedString>(rangeFrom(from));
  return "";
}

std::string TextReader::wordOrString(StringRef what) {
  if (peek('"'))
    return string(what);
  StringRef word = isOk ? peekWord() : "";
  if (word.empty())
    expected(what);
  take(word);
  return word.str();
}

StringRef TextReader::name(StringRef what) {
  SourceRange at;
  StringRef name = isOk ? takeWord(at) : "";
  if (!isIdentifier(name))
    expected(name.empty() ? here() : at, what);
  return name;
}

void TextReader::skipPastBrace() {
  while (at != end && *at != '}') {
    skipSpace();
    if (at != end && *at != '}')
      ++at;
  }
  recover();
  accept("}");
}

void TextReader::skipItem() {
  recover();
  while (inKeyLine() && at != end && *at != '\n' && *at != '}')
    ++at;
}
