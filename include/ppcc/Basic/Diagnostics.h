// What goes wrong, said in one form.
#pragma once

#include "ppcc/Basic/Source.h"
#include "ppcc/Support/LLVM.h"
#include "ppcc/Support/Suggest.h"

namespace ppcc {

enum class Severity : uint8_t { Warning, Error };

namespace diag {
/// A diagnostic, by the number of its code. The headers in Diagnostics/ name
/// those of a phase, so that a new one is news to that phase only.
enum Id : uint16_t {};

/// The id of a code like "E0301".
consteval Id idOf(const char (&code)[6]) {
  uint16_t number = 0;
  for (int i = 1; i != 5; ++i)
    number = uint16_t(number * 10 + (code[i] - '0'));
  return Id(number);
}

/// The format string of each diagnostic, known at compile time so that its
/// arguments are checked.
template <Id id> struct Text;
} // namespace diag

/// Declares the id of a line of a table and its text.
#define DIAG(Name, Code, Severity, Message, Hint)                              \
  namespace ppcc::diag {                                                       \
  inline constexpr Id Name = idOf(#Code);                                      \
  template <> struct Text<Name> {                                              \
    static constexpr const char value[] = Message;                             \
  };                                                                           \
  }

/// A row of the diagnostics table.
struct DiagInfo {
  diag::Id id;
  StringRef name; ///< `UnknownName`.
  StringRef code; ///< `E0301`.
  Severity severity;
  StringRef text; ///< The fmt format of the message.
  StringRef hint; ///< What the user can do.
};

/// All diagnostics, in the order of the phases.
ArrayRef<DiagInfo> diagTable();
/// The row of `id`.
const DiagInfo &diagInfo(diag::Id id);

/// Where a diagnostic points: a range of a source file or, when that file
/// cannot be shown, words.
struct Location {
  SourceRange range;
  std::string description;

  Location() = default;
  Location(SourceRange range) : range(range) {}
  Location(SourceLoc at) : range(at) {}
  explicit Location(std::string description)
      : description(std::move(description)) {}
};

/// `a.pp:3:7`, or the words of a place that no file shows; empty for nowhere.
std::string textOf(const Location &place, const SourceManager &sources);

/// A place and what it has to do with the error.
struct Note {
  Location place;
  std::string text;
};

/// An edit of a source file that fixes what is reported.
struct FixIt {
  SourceRange range;       ///< Empty where text is inserted.
  std::string replacement; ///< Empty where text is removed.
  std::string title;       ///< Such as "Insert `;`".
};

/// One finding.
struct Diagnostic {
  diag::Id id;
  Location place;
  std::string message;
  SmallVector<Note, 2> notes = {};
  std::vector<FixIt> fixes = {}; ///< Alternatives.
  /// A name that nothing declares, and the words that declare such names, as in
  /// `block action`; a library may have it.
  StringRef undeclared = {}, declaredBy = {};

  const DiagInfo &info() const { return diagInfo(id); }
};

/// Takes diagnostics in, counts them, and hands each on when it is complete.
class DiagnosticEngine {
public:
  using Consumer = std::function<void(const Diagnostic &)>;
  explicit DiagnosticEngine(Consumer consumer)
      : consumer(std::move(consumer)) {}

  /// A diagnostic under construction; it is handed on at the end of the
  /// statement.
  class Builder {
  public:
    Builder(DiagnosticEngine &engine, diag::Id id, Location place)
        : engine(&engine), diagnostic{id, std::move(place), {}},
          isShown(engine.shows(id)) {}
    Builder(Builder &&other)
        : engine(std::exchange(other.engine, nullptr)),
          diagnostic(std::move(other.diagnostic)), isShown(other.isShown) {}
    ~Builder() {
      if (engine)
        engine->take(std::move(diagnostic));
    }

    /// Adds a note, at a place or (with a default Location) without one.
    template <class... Args>
    Builder &note(Location place, fmt::format_string<Args...> text,
                  Args &&...args) {
      if (isShown)
        diagnostic.notes.push_back(
            {std::move(place), fmt::format(text, std::forward<Args>(args)...)});
      return *this;
    }

    /// Adds an edit that would fix it.
    Builder &fix(SourceRange range, std::string replacement,
                 std::string title) {
      if (isShown && range.valid())
        diagnostic.fixes.push_back(
            {range, std::move(replacement), std::move(title)});
      return *this;
    }
    Builder &replace(SourceRange range, const std::string &by) {
      return fix(range, by,
                 "Replace with `" + StringRef(by).trim().str() + "`");
    }
    Builder &insert(SourceLoc at, const std::string &text) {
      return fix({at, at}, text,
                 "Insert `" + StringRef(text).trim().str() + "`");
    }
    /// Notes, at a place or without one, what a range probably means.
    Builder &didYouMean(Location place, SourceRange range,
                        const std::string &meant) {
      return note(place, "did you mean `{}`?", meant).replace(range, meant);
    }
    /// Says that nothing declares a name; see Diagnostic::undeclared.
    Builder &undeclared(StringRef name, StringRef declaredBy) {
      diagnostic.undeclared = name;
      diagnostic.declaredBy = declaredBy;
      return *this;
    }

    /// False, nothing or null: `return diags.report<...>(...);` ends a function
    /// that gives one of these when it fails.
    template <class Failure>
      requires std::same_as<Failure, bool> || std::is_pointer_v<Failure> ||
               std::constructible_from<Failure, std::nullopt_t>
    operator Failure() const {
      return Failure();
    }

  private:
    friend DiagnosticEngine;
    void suggest(const auto &) {}
    /// Of a name that the place covers.
    template <class List> void suggest(const Suggestion<List> &suggestion) {
      SourceRange range = diagnostic.place.range;
      std::string meant = suggestion.meant();
      if (!meant.empty() &&
          range.end.raw - range.begin.raw == suggestion.name.size())
        replace(range, meant);
    }

    DiagnosticEngine *engine;
    Diagnostic diagnostic;
    bool isShown; ///< Else nobody reads its texts, and there are none.
  };

  /// Reports the diagnostic `id` at `place`: report<diag::UnknownName>(range,
  /// name). What didYouMean() gives is a fix, too.
  template <diag::Id id, class... Args>
  Builder report(Location place, Args &&...args) {
    Builder builder(*this, id, std::move(place));
    if (builder.isShown) {
      (builder.suggest(args), ...);
      builder.diagnostic.message =
          fmt::format(fmt::format_string<Args...>(diag::Text<id>::value),
                      std::forward<Args>(args)...);
    }
    return builder;
  }
  /// The same, to end a function that gives nothing.
  template <diag::Id id, class... Args>
  void refuse(Location place, Args &&...args) {
    report<id>(std::move(place), std::forward<Args>(args)...);
  }

  /// Errors taken so far, those above the limit included.
  size_t errorCount() const { return errors; }
  bool hasErrors() const { return errors != 0; }
  /// True once no more errors are shown; long loops that only look for errors
  /// may stop.
  bool saturated() const { return errors > maxErrors; }

  /// Errors shown before a last one says that there are more.
  size_t maxErrors = 100;

private:
  bool shows(diag::Id id) const {
    return diagInfo(id).severity != Severity::Error || errors < maxErrors;
  }
  void take(Diagnostic diagnostic);

  Consumer consumer;
  size_t errors = 0;
};

/// Writes `diagnostic` as compilers do: file, line, column, message and code;
/// the line of text with a caret; notes; what to do; and edits that fix it,
/// where these texts do not show them.
void render(const Diagnostic &diagnostic, const SourceManager &sources,
            raw_ostream &out, bool isColored = false);

/// Writes `diagnostic` as a JSON object on a line of its own: `code`,
/// `severity`, `message`, `hint` (what to do) and `notes`. It and each note
/// have a `place`, as people read it, if they point anywhere, and `file`,
/// `line`, `column`, `end_line`, `end_column` if that is in a source file; all
/// count from 1, columns in bytes, and the end is not in the range. `edits`, if
/// any, are alternatives: `replacement` in the place of such a range, and a
/// `title`.
void renderJson(const Diagnostic &diagnostic, const SourceManager &sources,
                raw_ostream &out);

} // namespace ppcc
