// Walks over the text of a program: its characters, words, numbers and strings.
#pragma once

#include "ppcc/Basic/Diagnostics.h"

namespace ppcc {

/// A place in the text. `accept` takes what it asks for, if it is there;
/// `expect` reports when it is not. Space and comments may stand in front of
/// all but the single characters.
class TextCursor {
public:
  TextCursor(uint32_t file, const SourceManager &sources,
             DiagnosticEngine &diags)
      : sources(sources), diags(diags), file(file), text(sources.text(file)),
        at(text.begin()), end(text.end()), lineStart(at) {}

  // ---- Places ----

  /// The character that comes next, which textFrom() and others take.
  const char *place() const { return at; }
  StringRef textFrom(const char *from) const {
    return StringRef(from, at - from);
  }
  SourceRange range(StringRef part) const {
    return {sources.loc(file, part.begin() - text.begin()),
            sources.loc(file, part.end() - text.begin())};
  }
  SourceRange rangeFrom(const char *from) const {
    return range(textFrom(from));
  }
  /// The next character.
  SourceRange here() const { return range(StringRef(at, at == end ? 0 : 1)); }
  uint32_t lineNumber() const { return line; }
  /// The column of a place in this line, from 1.
  uint32_t columnOf(const char *place) const {
    return uint32_t(place - lineStart + 1);
  }
  size_t bytesLeft() const { return end - at; }

  // ---- Single characters ----

  static bool isSpace(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
  }
  static bool isWordChar(char c) {
    return llvm::isAlnum(c) || c == '_' || c == '.' || c == '+' || c == '-';
  }
  /// Of the letters of an action.
  static bool isKindChar(char c) { return llvm::isAlpha(c) || c == '_'; }

  /// Whether there is a next character for which `holds` is true.
  template <class Pred> bool isNext(Pred holds) const {
    return at != end && holds(*at);
  }
  bool isNext(char c) const { return at != end && *at == c; }
  bool isDigitNext() const { return at != end && llvm::isDigit(*at); }
  bool acceptNext(char c) {
    bool found = isNext(c);
    at += found;
    return found;
  }
  /// The characters from here on for which `holds` is true.
  template <class Pred> StringRef nextWhile(Pred holds) const {
    const char *to = at;
    while (to != end && holds(*to))
      ++to;
    return StringRef(at, to - at);
  }
  void take(StringRef next) { at += next.size(); }
  void takeOne() { ++at; }
  template <class Pred> StringRef takeWhile(Pred holds) {
    StringRef taken = nextWhile(holds);
    take(taken);
    return taken;
  }

  // ---- Tokens ----

  void skipSpace() {
    for (; at != end; ++at) {
      if (*at == '\n') {
        ++line;
        lineStart = at + 1;
      } else if (*at == '/' && at + 1 != end && at[1] == '/') {
        while (at + 1 != end && at[1] != '\n')
          ++at;
      } else if (!isSpace(*at)) {
        return;
      }
    }
  }
  bool atEnd() {
    skipSpace();
    return at == end;
  }
  bool peek(char c) {
    skipSpace();
    return isNext(c);
  }
  bool accept(StringRef token) {
    skipSpace();
    if (!StringRef(at, end - at).starts_with(token))
      return false;
    take(token);
    return true;
  }
  bool expect(StringRef token) {
    return accept(token) || expected(fmt::format("`{}`", token));
  }
  StringRef peekWord() {
    skipSpace();
    return nextWhile(isWordChar);
  }
  bool acceptWord(StringRef word) {
    if (peekWord() != word)
      return false;
    take(word);
    return true;
  }
  bool expectWord(StringRef word) {
    return acceptWord(word) || expected(fmt::format("`{}`", word));
  }
  /// Takes a word, which may be empty, and puts its place into `wordRange`.
  StringRef takeWord(SourceRange &wordRange) {
    StringRef word = peekWord();
    wordRange = range(word);
    take(word);
    return word;
  }
  /// Reports that `what` should come next. False.
  bool expected(StringRef what);

  /// A number of at most `max`. Nothing, and a report, for anything else.
  std::optional<uint32_t> number(StringRef what, uint32_t max) {
    skipSpace();
    return digits(what, max);
  }
  /// The same, without space in front.
  std::optional<uint32_t> digits(StringRef what, uint32_t max) {
    const char *from = at;
    uint64_t value = 0;
    bool fits = true;
    for (; at != end && llvm::isDigit(*at); ++at) {
      value = value * 10 + (*at - '0');
      if (value > max) {
        fits = false;
        value = max;
      }
    }
    if (at == from || !fits)
      return noNumber(textFrom(from), what, max);
    return uint32_t(value);
  }
  /// What stands between quotes. Nothing, and a report, for anything else.
  std::optional<std::string> string(StringRef what);
  std::optional<std::string> wordOrString(StringRef what);

  /// Moves to the end.
  void stop() { at = end; }
  /// Moves behind the next `}`.
  void skipPastBrace();

  // ---- Items ----

  /// Begins an item of the head: takes its key, a word that may be empty.
  StringRef takeKey() {
    StringRef key = takeWord(keyAt);
    keyLine = line;
    return key;
  }
  /// The key of the item that is being read.
  SourceRange keyRange() const { return keyAt; }
  /// Whether the text is in the line of the key still.
  bool inKeyLine() const { return line == keyLine; }
  /// Moves to the end of the line of the key, unless it is behind that already.
  void skipItem();

private:
  std::optional<uint32_t> noNumber(StringRef digits, StringRef what,
                                   uint32_t max);

  const SourceManager &sources;
  DiagnosticEngine &diags;
  uint32_t file;
  StringRef text;
  const char *at, *end;
  const char *lineStart;
  uint32_t line = 1, keyLine = 0;
  SourceRange keyAt;
};

} // namespace ppcc
