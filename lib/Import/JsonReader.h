// What the readers of JSON files share: where they are, the values that they
// take, and what is wrong there.
#pragma once

#include "JsonCursor.h"
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

/// Walks over `part` of a file; `shape` is what it reports for a value of
/// another form, with the name of the value and what it must be.
template <diag::Id shape> class JsonReader {
public:
  JsonReader(StringRef part, uint32_t file, SourceManager &sources,
             DiagnosticEngine &diags)
      : file(file), sources(sources), diags(diags), text(sources.text(file)),
        cursor(part) {}

  // ---- Places ----

  SourceRange range(StringRef part) const {
    return {sources.loc(file, part.begin() - text.begin()),
            sources.loc(file, part.end() - text.begin())};
  }
  /// The beginning of what was read last.
  SourceRange lastPlace() const {
    return range(cursor.last().take_front(80).take_until(
        [](char c) { return c == '\n'; }));
  }
  /// Where in the file that stands, in bytes.
  uint32_t lastOffset() const {
    return uint32_t(cursor.last().begin() - text.begin());
  }

  // ---- Reports ----

  /// Reports that the value taken last is not what `what` must be.
  void wrong(StringRef what, StringRef form) {
    if (!cursor.failed() && !diags.saturated())
      diags.report<shape>(lastPlace(), what, form);
    if (diags.saturated())
      cursor.stop();
  }
  /// Reports that there is more than fits, and stops.
  void tooMany(uint64_t limit, StringRef what) {
    diags.report<diag::ImportTooMany>(lastPlace(), limit, what);
    cursor.stop();
  }
  /// Reports what is wrong with the JSON itself, or stands behind its end.
  void expectEnd() {
    cursor.expectEnd();
    if (cursor.failed())
      diags.report<diag::ImportNotJson>(range(cursor.errorPlace()),
                                        cursor.error());
  }

  // ---- Values ----

  /// An integer from `least` to `most`; `least`, and a report, for another
  /// value.
  int64_t number(StringRef what, int64_t least, int64_t most) {
    auto value = cursor.integer();
    if (value && *value >= least && *value <= most)
      return *value;
    wrong(what, most < least
                    ? std::string("absent: there is nothing that it could name")
                    : fmt::format("an integer from {} to {}", least, most));
    return least;
  }
  /// A string; an empty one, and a report, for another value.
  std::string string(StringRef what) {
    auto value = cursor.string();
    if (!value)
      wrong(what, "a string");
    return value.value_or("");
  }
  /// `otherwise`, and a report, for another value than a boolean.
  bool boolean(StringRef what, bool otherwise) {
    auto value = cursor.boolean();
    if (!value)
      wrong(what, "true or false");
    return value.value_or(otherwise);
  }
  /// What `find` makes of a string; a report when that is nothing.
  template <class Find> auto word(StringRef what, Find find, StringRef form) {
    auto found = find(string(what));
    if (!found)
      wrong(what, form);
    return found;
  }
  /// A list of `N` integers; false, and a report, for another value.
  template <size_t N>
  bool numbers(StringRef what, std::array<int64_t, N> &values) {
    size_t count = 0;
    bool good = cursor.peek() == '[';
    cursor.array([&] {
      auto value = cursor.integer();
      good &= value && count < N;
      if (good)
        values[count] = *value;
      ++count;
    });
    if (good && count == N)
      return true;
    wrong(what, fmt::format("a list of {} integers", N));
    return false;
  }
  /// Calls `visit` for each element, which takes it.
  void list(StringRef what, function_ref<void()> visit) {
    bool isList = cursor.peek() == '[';
    cursor.array(visit);
    if (!isList)
      wrong(what, "a list");
  }
  /// Calls `visit`, which takes the value, for each member. Whether it is an
  /// object.
  bool object(StringRef what, function_ref<void(StringRef key)> visit) {
    bool isObject = cursor.peek() == '{';
    cursor.object(visit);
    if (!isObject)
      wrong(what, "an object");
    return isObject;
  }
  /// Passes over an object; its text, or nothing and a report.
  StringRef skipObject(StringRef what) {
    bool isObject = cursor.peek() == '{';
    cursor.skip();
    if (isObject)
      return cursor.last();
    wrong(what, "an object");
    return "";
  }
  /// Reads the fields of an object; others are passed over.
  void object(StringRef what, ArrayRef<JsonField> fields) {
    uint32_t seen = 0;
    bool isObject = object(what, [&](StringRef name) {
      auto *field = findBy(fields, name, &JsonField::name);
      if (!field)
        return cursor.skip();
      uint32_t bit = 1u << (field - fields.begin());
      if (seen & bit) {
        diags.report<diag::ImportJsonTwice>(lastPlace(), field->name);
        return cursor.skip();
      }
      seen |= bit;
      field->read();
    });
    if (isObject && !cursor.failed() && !diags.saturated())
      reportMissing(what, fields, seen);
  }

  // ---- Fields, which put what they take into a variable ----

  JsonField textField(StringRef name, std::string &value) {
    return {name, [=, this, &value] { value = string(name); }};
  }
  JsonField flagField(StringRef name, bool &value, bool otherwise) {
    return {name, [=, this, &value] { value = boolean(name, otherwise); }};
  }
  template <class Number>
  JsonField numberField(StringRef name, Number &value, int64_t least,
                        int64_t most) {
    return {name, [=, this, &value] {
              value = static_cast<Number>(number(name, least, most));
            }};
  }
  JsonField listField(StringRef name, std::function<void()> element) {
    return {name, [=, this] { list(name, element); }};
  }

  uint32_t file;
  SourceManager &sources;
  DiagnosticEngine &diags;
  StringRef text; ///< Of the whole file.
  JsonCursor cursor;

private:
  void reportMissing(StringRef what, ArrayRef<JsonField> fields,
                     uint32_t seen) {
    std::string missing;
    for (auto [i, field] : llvm::enumerate(fields))
      if (!field.isOptional && !(seen & 1u << i))
        missing +=
            fmt::format("{}`{}`", missing.empty() ? "" : ", ", field.name);
    if (!missing.empty())
      diags.report<diag::ImportJsonMissing>(lastPlace(), what, missing);
  }
};

/// Walks over a program.
using ProgramJson = JsonReader<diag::ImportJsonShape>;

} // namespace ppcc
