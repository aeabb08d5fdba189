// What the readers of the sections of a program's head share.
#pragma once

#include "TextCursor.h"
#include "ppcc/Basic/Diagnostics/IR.h"
#include "ppcc/IR/HeadChecks.h"

namespace ppcc {

/// A head in text, and what is read from it.
struct HeadText {
  TextCursor &text;
  Head &head;
  Facts &facts;
  DiagnosticEngine &diags;
  bool ranksGiven = false; ///< The text has the key `ranks`.
};

/// Reads items of one subject. When the rest of an item cannot be read it is
/// given up: nothing more of it is taken or reported, and what is asked for is
/// 0 or empty. What refers to items that may stand behind it is checked at the
/// end.
class TextSection {
public:
  struct Key {
    StringRef name;
    std::function<void()> read; ///< Starts behind the key.
  };

  explicit TextSection(HeadText &in)
      : in(in), text(in.text), head(in.head), diags(in.diags) {}
  virtual ~TextSection() = default;

  /// Reads the rest of an item; false, after a report, when it was given up.
  bool read(const Key &key) {
    going = true;
    key.read();
    return going;
  }
  /// Checks what may refer to items behind it.
  virtual void check() {}

  std::vector<Key> keys;

protected:
  template <diag::Id id, class... Args>
  void report(SourceRange at, Args &&...args) {
    if (going)
      diags.report<id>(at, std::forward<Args>(args)...);
  }
  /// Reports, and gives the item up.
  template <diag::Id id, class... Args>
  void refuse(SourceRange at, Args &&...args) {
    report<id>(at, std::forward<Args>(args)...);
    going = false;
  }
  void expected(SourceRange at, StringRef what) {
    refuse<diag::IrExpected>(at, what);
  }
  void expected(StringRef what) { expected(text.here(), what); }

  void expect(StringRef token) { going = going && text.expect(token); }
  void expectWord(StringRef word) { going = going && text.expectWord(word); }
  bool accept(StringRef token) { return going && text.accept(token); }
  bool acceptWord(StringRef word) { return going && text.acceptWord(word); }
  uint32_t number(StringRef what, uint32_t max = UINT32_MAX - 1) {
    return taken(going ? text.number(what, max) : std::nullopt);
  }
  std::string string(StringRef what) {
    return taken(going ? text.string(what) : std::nullopt);
  }
  std::string wordOrString(StringRef what) {
    return taken(going ? text.wordOrString(what) : std::nullopt);
  }
  /// Calls `element`, which takes one, for each that stands in brackets.
  template <class Element> void list(Element element) {
    expect("[");
    while (going && !text.accept("]"))
      element();
  }
  /// A string, the name of a pipe.
  PipeId pipeName();
  /// A name, or a report that `what` should stand there.
  StringRef name(StringRef what);
  /// The kind with these letters; when it does not compute, the report adds
  /// `others` to what there may be.
  KindId computeKind(StringRef letters, SourceRange at, StringRef others = "");
  /// Takes the letters of a kind that computes.
  KindId takeComputeKind(SourceRange &at) {
    StringRef letters = text.takeWord(at);
    return computeKind(letters, at);
  }

  HeadText &in;
  TextCursor &text;
  Head &head;
  DiagnosticEngine &diags;
  bool going = true; ///< The item has not been given up.

private:
  template <class Value> Value taken(std::optional<Value> value) {
    going = value.has_value();
    return value.value_or(Value());
  }
};

/// The sections of the subjects that have a file of their own.
std::unique_ptr<TextSection> textCosts(HeadText &in);
std::unique_ptr<TextSection> textKinds(HeadText &in);
std::unique_ptr<TextSection> textNodes(HeadText &in);
std::unique_ptr<TextSection> textPipes(HeadText &in);

/// Reads what stands behind the head, into a program whose head is complete.
/// `text` is behind the head of a program that stands in a file called
/// `fileName`. O(bytes).
void readRows(TextCursor text, StringRef fileName, Program &program,
              DiagnosticEngine &diags);

} // namespace ppcc
