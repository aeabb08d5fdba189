// Walks over the text of a program: its characters, words, numbers and strings;
// what the readers of the items of its head share.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Basic/Diagnostics/IR.h"
#include "ppcc/IR/HeadChecks.h"
#include "ppcc/IR/Text.h"

namespace ppcc {

/// A place in the text. `accept` takes what it asks for, if it is there;
/// `expect` reports when it is not. Space and comments may stand before
/// all but the single characters.
///
/// When an item, or an action, cannot be read it is given up: until restart()
/// no token of it is taken or reported, and what is asked for is 0, empty or
/// false.
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

  uint32_t offset() const { return uint32_t(at - text.begin()); }
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
  size_t bytesLeft() const { return end - at; }

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
  bool peek(char c) {
    skipSpace();
    return isNext(c);
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
  /// Takes a word, which may be empty, and puts its place into `wordRange`.
  StringRef takeWord(SourceRange &wordRange) {
    StringRef word = peekWord();
    wordRange = range(word);
    take(word);
    return word;
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
  /// What stands between quotes.
  std::string string(StringRef what);
  std::string wordOrString(StringRef what);
  /// What isIdentifier() takes.
  StringRef name(StringRef what);
  /// What `find` makes of a word.
  template <class Find> auto word(Find find, StringRef what) {
    StringRef word = isOk ? peekWord() : "";
    auto found = find(word);
    if (found)
      take(word);
    else
      expected(what);
    return found;
  }
  /// What a cost may be.
  int64_t cost(const CostNumber &number) {
    auto parse = [&](StringRef word) { return number.parse(word); };
    return word(parse, number.description).value_or(0);
  }
  /// Calls `element`, which takes one, for each that stands in brackets.
  template <class Element> void list(Element element) {
    expect("[");
    while (isOk && !accept("]"))
      element();
  }

  /// Moves to the end.
  void stop() { at = end; }
  /// Moves after the next `}`, and restarts.
  void skipPastBrace();

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

  // ---- Items ----

  /// Begins an item of the head: takes its key, a word that may be empty.
  StringRef takeKey() {
    recover();
    StringRef key = takeWord(keyAt);
    keyLine = line;
    return key;
  }
  /// The key of the item that is being read.
  SourceRange keyRange() const { return keyAt; }
  /// Whether the text is in the line of the key still.
  bool inKeyLine() const { return line == keyLine; }
  /// Moves to the end of the line of the key, unless it is past that already.
  void skipItem();

  DiagnosticEngine &diags;

private:
  void noNumber(StringRef digits, StringRef what, uint32_t max);

  const SourceManager &sources;
  uint32_t file;
  StringRef text;
  const char *at, *end;
  const char *lineStart;
  bool isOk = true;
  uint32_t line = 1, keyLine = 0;
  SourceRange keyAt;
};

/// Reads what stands after the head, into a program whose head is complete.
/// `text` follows the head of a program that stands in a file called
/// `fileName`. O(bytes).
void readRows(TextReader text, StringRef fileName, Program &program,
              DiagnosticEngine &diags);

/// A head, and the text that it is read from, item by item. What refers to
/// items that may stand after it is checked at the end.
struct TextHead {
  TextReader &in;
  Head &head;

  /// A string, the name of a pipe.
  PipeId pipeName() {
    std::string name = in.string("the name of a pipe");
    for (PipeId id : head.pipeIds())
      if (in.ok() && head.pipes[id.value].name == name)
        return id;
    in.refuse<diag::IrUndefined>(in.keyRange(), "pipe",
                                 fmt::format("`{}`", name));
    return PipeId();
  }
  /// The kind with this mnemonic; when it does not compute, the report adds
  /// `others` to what there may be.
  KindId computeKind(StringRef mnemonic, SourceRange at,
                     StringRef others = "") {
    auto kind = head.kinds.find(mnemonic);
    if (!kind || !head.kinds[*kind].isCompute())
      in.expected(at, fmt::format("the letters of a compute action{}", others));
    return kind.value_or(KindId());
  }
  /// Takes the mnemonic of a kind that computes.
  KindId takeComputeKind(SourceRange &at) {
    StringRef mnemonic = in.takeWord(at);
    return computeKind(mnemonic, at);
  }
};

} // namespace ppcc
