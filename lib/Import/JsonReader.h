// What the readers of JSON files share: where they are, and what is wrong
// there.
#pragma once

#include "JsonCursor.h"
#include "ppcc/Basic/Diagnostics.h"

#include "llvm/ADT/StringExtras.h"

namespace ppcc {

/// Walks over `part` of a file; `shape` is what it reports for a value of
/// another form, with the name of the value and what it must be.
template <diag::Id shape> class JsonReader {
protected:
  JsonReader(llvm::StringRef part, uint32_t file, SourceManager &sources,
             DiagnosticEngine &diags)
      : file(file), sources(sources), diags(diags), text(sources.text(file)),
        cursor(part) {}

  SourceRange range(llvm::StringRef part) const {
    return {sources.loc(file, part.begin() - text.begin()),
            sources.loc(file, part.end() - text.begin())};
  }
  /// The beginning of what was read last.
  SourceRange lastPlace() const {
    return range(cursor.last().take_front(80).take_until(
        [](char c) { return c == '\n'; }));
  }

  /// Reports that the value taken last is not what `what` must be.
  void wrong(llvm::StringRef what, llvm::StringRef form) {
    if (!cursor.failed() && !diags.saturated())
      diags.report<shape>(lastPlace(), what, form);
    if (diags.saturated())
      cursor.stop();
  }
  /// Reports what is wrong with the JSON itself, or stands behind its end.
  void expectEnd() {
    cursor.expectEnd();
    if (cursor.failed())
      diags.report<diag::ImportNotJson>(range(cursor.errorPlace()),
                                        cursor.error());
  }

  uint32_t file;
  SourceManager &sources;
  DiagnosticEngine &diags;
  llvm::StringRef text; ///< Of the whole file.
  JsonCursor cursor;
};

} // namespace ppcc
