// Walks over the text of the rows of a program: characters, words and numbers.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Basic/Diagnostics/IR.h"

namespace ppcc {

/// A place in the text. `accept` takes what it asks for, if it is there;
/// `expect` reports when it is not. Space and comments may stand before
/// all but the single characters.
///
/// When an action cannot be read it is given up: until recover() no token of it
/// is taken or reported, and what is asked for is 0, empty or false.
class TextReader {
public:
  TextReader(uint32_t file, const SourceManager &sources,
             DiagnosticEngine &diags)
      : diags(diags), sources(sources), file(file), text(sources.text(file)),
        at(text.begin()), end(text.end()), lineStart(at) {}

  /// What is being read has not been given up.
  bool ok() const { return isOk; }
  void recover() { isOk = true; }

  // ---- Places ----

  /// Moves to another byte of the text.
  void moveTo(uint32_t offset) {
    at = text.begin() + offset;
    StringRef before = text.take_front(offset);
    line = uint32_t(before.count('\n')) + 1;
    lineStart = text.begin() + (before.rfind('\n') + 1);
    recover();
  }
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
  StringRef rest() const { return StringRef(at, end - at); }

  // ---- Single characters ----

  static bool isSpace(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
  }
  static bool isWordChar(char c) {
    return llvm::isAlnum(c) || c == '_' || c == '.' || c == '+' || c == '-';
  }
  /// Of the mnemonic of an action.
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
  bool accept(StringRef token) {
    skipSpace();
    if (!isOk || !StringRef(at, end - at).starts_with(token))
      return false;
    take(token);
    return true;
  }
  bool expect(StringRef token) {
    if (accept(token))
      return true;
    expected(fmt::format("`{}`", token));
    return false;
  }
  StringRef peekWord() {
    skipSpace();
    return nextWhile(isWordChar);
  }
  bool acceptWord(StringRef word) {
    if (!isOk || peekWord() != word)
      return false;
    take(word);
    return true;
  }
  bool expectWord(StringRef word) {
    if (acceptWord(word))
      return true;
    expected(fmt::format("`{}`", word));
    return false;
  }
  /// A number of at most `max`.
  uint32_t number(StringRef what, uint32_t max = UINT32_MAX - 1) {
    skipSpace();
    return isOk ? digits(what, max) : 0;
  }
  /// The same, without space in front.
  uint32_t digits(StringRef what, uint32_t max) {
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
      noNumber(textFrom(from), what, max);
    return uint32_t(isOk ? value : 0);
  }
  /// Moves to the end.
  void stop() { at = end; }
  /// Moves after the next `}`, and restarts.
  void skipPastBrace() {
    while (at != end && *at != '}') {
      skipSpace();
      if (at != end && *at != '}')
        ++at;
    }
    recover();
    accept("}");
  }

  // ---- Reports ----

  template <diag::Id id, class... Args>
  void report(SourceRange at, Args &&...args) {
    if (isOk)
      diags.report<id>(at, std::forward<Args>(args)...);
  }
  /// Reports, and gives up.
  template <diag::Id id, class... Args>
  void refuse(SourceRange at, Args &&...args) {
    report<id>(at, std::forward<Args>(args)...);
    isOk = false;
  }
  /// Reports that `what` should stand there, or come next, and gives up.
  void expected(SourceRange at, StringRef what) {
    refuse<diag::IrExpected>(at, what);
  }
  void expected(StringRef what) { expected(here(), what); }

  DiagnosticEngine &diags;

private:
  /// Reports what is no number, or too large.
  void noNumber(StringRef digits, StringRef what, uint32_t max) {
    if (digits.empty())
      expected(fmt::format("a number: {}", what));
    else
      refuse<diag::IrNumberTooLarge>(range(digits), digits.take_front(40), what,
                                     max);
  }

  const SourceManager &sources;
  uint32_t file;
  StringRef text;
  const char *at, *end;
  const char *lineStart;
  bool isOk = true;
  uint32_t line = 1;
};

} // namespace ppcc
