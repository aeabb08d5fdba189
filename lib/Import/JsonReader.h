// What the readers of JSON files share: where they are, the values that they
// take, and what is wrong there.
#pragma once

#include "JsonCursor.h"
#include "ppcc/Basic/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <array>

namespace ppcc {

/// A key of an object, what of `Owner` reads its value, and whether it may be
/// absent.
template <class Owner> struct JsonKey {
  llvm::StringRef name;
  void (Owner::*read)();
  bool isOptional = false;
};

/// Walks over `part` of a file; `shape` is what it reports for a value of
/// another form, with the name of the value and what it must be.
template <diag::Id shape> class JsonReader {
public:
  JsonReader(llvm::StringRef part, uint32_t file, SourceManager &sources,
             DiagnosticEngine &diags)
      : file(file), sources(sources), diags(diags), text(sources.text(file)),
        cursor(part) {}

  // ---- Places ----

  SourceRange range(llvm::StringRef part) const {
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
    return static_cast<uint32_t>(cursor.last().begin() - text.begin());
  }

  // ---- Reports ----

  /// Reports that the value taken last is not what `what` must be.
  void wrong(llvm::StringRef what, llvm::StringRef form) {
    if (!cursor.failed() && !diags.saturated())
      diags.report<shape>(lastPlace(), what, form);
    if (diags.saturated())
      cursor.stop();
  }
  /// Reports that there is more than fits, and stops.
  void tooMany(uint64_t limit, llvm::StringRef what) {
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
  int64_t number(llvm::StringRef what, int64_t least, int64_t most) {
    auto value = cursor.integer();
    if (value && *value >= least && *value <= most)
      return *value;
    wrong(what, most < least
                    ? std::string("absent: there is nothing that it could name")
                    : fmt::format("an integer from {} to {}", least, most));
    return least;
  }
  /// A string; an empty one, and a report, for another value.
  std::string string(llvm::StringRef what) {
    auto value = cursor.string();
    if (!value)
      wrong(what, "a string");
    return value.value_or("");
  }
  /// `otherwise`, and a report, for another value than a boolean.
  bool boolean(llvm::StringRef what, bool otherwise) {
    auto value = cursor.boolean();
    if (!value)
      wrong(what, "true or false");
    return value.value_or(otherwise);
  }
  /// A list of `N` integers; false, and a report, for another value.
  template <size_t N>
  bool numbers(llvm::StringRef what, std::array<int64_t, N> &values) {
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
  void list(llvm::StringRef what, llvm::function_ref<void()> visit) {
    bool isList = cursor.peek() == '[';
    cursor.array(visit);
    if (!isList)
      wrong(what, "a list");
  }
  /// Calls `visit`, which takes the value, for each member. Whether it is an
  /// object.
  bool object(llvm::StringRef what,
              llvm::function_ref<void(llvm::StringRef key)> visit) {
    bool isObject = cursor.peek() == '{';
    cursor.object(visit);
    if (!isObject)
      wrong(what, "an object");
    return isObject;
  }
  /// Reads an object by a table of its keys; others are passed over.
  template <class Owner>
  void object(llvm::StringRef what, llvm::ArrayRef<JsonKey<Owner>> keys,
              Owner &owner) {
    uint32_t seen = 0;
    bool isObject = object(what, [&](llvm::StringRef name) {
      auto *key = llvm::find_if(
          keys, [&](const JsonKey<Owner> &key) { return key.name == name; });
      if (key == keys.end())
        return cursor.skip();
      uint32_t bit = 1u << (key - keys.begin());
      if (seen & bit) {
        diags.report<diag::ImportJsonTwice>(lastPlace(), key->name);
        return cursor.skip();
      }
      seen |= bit;
      (owner.*key->read)();
    });
    if (isObject && !cursor.failed() && !diags.saturated())
      reportMissing(what, keys, seen);
  }
  /// Passes over an object; its text, or nothing and a report.
  llvm::StringRef skipObject(llvm::StringRef what) {
    bool isObject = cursor.peek() == '{';
    cursor.skip();
    if (isObject)
      return cursor.last();
    wrong(what, "an object");
    return "";
  }

  uint32_t file;
  SourceManager &sources;
  DiagnosticEngine &diags;
  llvm::StringRef text; ///< Of the whole file.
  JsonCursor cursor;

private:
  template <class Owner>
  void reportMissing(llvm::StringRef what, llvm::ArrayRef<JsonKey<Owner>> keys,
                     uint32_t seen) {
    std::string missing;
    for (auto [i, key] : llvm::enumerate(keys))
      if (!key.isOptional && !(seen & 1u << i))
        missing += fmt::format("{}`{}`", missing.empty() ? "" : ", ", key.name);
    if (!missing.empty())
      diags.report<diag::ImportJsonMissing>(lastPlace(), what, missing);
  }
};

/// Whether it is made of letters, digits and underscores, one at least.
inline bool isWord(llvm::StringRef text) {
  return !text.empty() && llvm::all_of(text, [](char c) {
    return llvm::isAlnum(c) || c == '_';
  });
}

/// Walks over a program.
using ProgramJson = JsonReader<diag::ImportJsonShape>;

} // namespace ppcc
