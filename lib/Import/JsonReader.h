// Walks over JSON text, value by value, without keeping any, and reports what
// is wrong there.
#pragma once

#include "ppcc/Basic/Diagnostics.h"
#include "ppcc/Basic/Diagnostics/Import.h"

namespace ppcc {

/// A key of an object, what takes its value, and whether it may be absent.
struct JsonField {
  StringRef name;
  std::function<void()> read;
  bool isOptional = false;
};

/// The same field, which may be absent.
inline JsonField optional(JsonField field) {
  field.isOptional = true;
  return field;
}

/// Reports a value of another form: its name, and what it must be.
using ReportShape = void(DiagnosticEngine &diags, SourceRange at,
                         StringRef what, StringRef form);
template <diag::Id shape>
void reportShape(DiagnosticEngine &diags, SourceRange at, StringRef what,
                 StringRef form) {
  diags.report<shape>(at, what, form);
}

/// A place in JSON text, a part of a file. Each function takes the next value;
/// one that asks for another form than the value has passes over it. After a
/// mistake in the JSON itself, or stop(), nothing more is taken, or reported.
class JsonReader {
public:
  JsonReader(StringRef part, uint32_t file, SourceManager &sources,
             DiagnosticEngine &diags,
             ReportShape *shape = reportShape<diag::ImportJsonShape>)
      : file(file), sources(sources), diags(diags), text(sources.text(file)),
        at(part.begin()), end(part.end()), shape(shape),
        errorsBefore(diags.errorCount()) {}

  // ---- Places ----

  SourceRange range(StringRef part) const {
    return {sources.loc(file, part.begin() - text.begin()),
            sources.loc(file, part.end() - text.begin())};
  }
  /// The text of the value taken last; of an object or array its brackets.
  StringRef last() const { return lastToken; }
  /// Its beginning.
  SourceRange lastPlace() const {
    return range(
        last().take_front(80).take_until([](char c) { return c == '\n'; }));
  }
  /// The byte in the file where that is.
  uint32_t lastOffset() const {
    return uint32_t(last().begin() - text.begin());
  }

  // ---- Reports ----

  /// Whether more is taken.
  bool isReading() const { return isOpen; }
  /// Whether nothing was reported since the beginning.
  bool isGood() const { return diags.errorCount() == errorsBefore; }
  /// Takes nothing more.
  void stop() { isOpen = false; }
  /// Reports that the value taken last is not what `what` must be.
  void wrong(StringRef what, StringRef form);
  /// Reports that there is more than fits, and stops.
  void tooMany(uint64_t limit, StringRef what);
  /// Reports what stands after the value.
  void expectEnd();

  // ---- Values, as they are ----

  /// The first byte of the next value, or 0 at the end.
  char peek();
  /// Passes over any value.
  void skip();
  /// Whether the next value is an object with this key. Takes nothing, unless a
  /// mistake comes first.
  bool hasKey(StringRef key);
  /// An integer; one that does not fit is the largest or smallest that does.
  std::optional<int64_t> integer();
  std::optional<std::string> string();
  /// Any value but an object or array, as written.
  std::optional<StringRef> scalar();
  /// Calls `visit`, which takes one value, for each element. Whether it is an
  /// array.
  bool array(function_ref<void()> visit);
  /// Calls `visit`, which takes the value, for each member. Whether it is an
  /// object.
  bool object(function_ref<void(StringRef key)> visit);

  // ---- Values, and reports for those of another form ----

  /// An integer from `least` to `most`; else `least`.
  int64_t number(StringRef what, int64_t min, int64_t max);
  /// The integers of a list; nothing, without a report, for anything else.
  std::optional<std::vector<int64_t>> integers();
  /// A string; else an empty one.
  std::string string(StringRef what);
  /// `otherwise` when it is not a boolean.
  bool boolean(StringRef what, bool otherwise);
  /// What `find` makes of a string.
  template <class Find> auto word(StringRef what, Find find, StringRef form) {
    auto found = find(string(what));
    if (!found)
      wrong(what, form);
    return found;
  }
  /// The integers of a list; nothing when there are not `N`.
  template <size_t N>
  std::optional<std::array<int64_t, N>> numbers(StringRef what) {
    std::array<int64_t, N> values;
    if (takeNumbers(values))
      return values;
    if (auto all = integers(); all && all->size() == N) {
      llvm::copy(*all, values.begin());
      return values;
    }
    wrong(what, fmt::format("a list of {} integers", N));
    return std::nullopt;
  }
  /// Calls `visit` for each element, which takes it.
  void list(StringRef what, function_ref<void()> visit) {
    if (!array(visit))
      wrong(what, "a list");
  }
  /// Calls `visit`, which takes the value, for each member. Whether it is an
  /// object.
  bool object(StringRef what, function_ref<void(StringRef key)> visit) {
    bool isObject = object(visit);
    if (!isObject)
      wrong(what, "an object");
    return isObject;
  }
  /// Reads the fields of an object in this order, whatever that of the text, so
  /// that each finds what it refers to; others are passed over. False where it
  /// has the key `instead`, or after a report: then none is read.
  bool object(StringRef what, ArrayRef<JsonField> fields,
              StringRef instead = "");
  /// Calls `read`, which takes the value, where a value stands that was passed
  /// over.
  void within(StringRef value, function_ref<void()> read);

  // ---- Fields, which put what they take into a variable ----

  JsonField textField(StringRef name, std::string &value) {
    return {name, [=, this, &value] { value = string(name); }};
  }
  template <class Number>
  JsonField numberField(StringRef name, Number &value, int64_t min,
                        int64_t max) {
    return {name, [=, this, &value] {
              value = static_cast<Number>(number(name, min, max));
            }};
  }
  JsonField listField(StringRef name, std::function<void()> element) {
    return {name, [=, this] { list(name, element); }};
  }

  uint32_t file;
  SourceManager &sources;
  DiagnosticEngine &diags;
  StringRef text; ///< Of the whole file.

private:
  bool fail(StringRef why);
  bool accept(char c);
  bool expect(char c, StringRef what) { return accept(c) || fail(what); }
  void items(char close, function_ref<void()> item);
  /// Takes a list of as many small integers, as almost all are; else nothing.
  bool takeNumbers(MutableArrayRef<int64_t> values);
  bool passString();
  StringRef rawValue();
  std::optional<std::string> takeString();
  bool takeNumber(bool &isInteger);
  void takeWord();

  const char *at, *end;
  ReportShape *shape;
  size_t errorsBefore;
  StringRef lastToken;
  unsigned depth = 0;
  bool isOpen = true;
};

} // namespace ppcc
