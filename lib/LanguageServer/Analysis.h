// What the language server finds out about a text.
#pragma once

#include "Text.h"
#include "ppcc/LanguageServer/LanguageServer.h"
#include "ppcc/Sema/Observer.h"

namespace ppcc::lsp {

/// How a text is compiled: as a line `// ppcc: -D P=8 -D M=20` of it says, else
/// as the editor's settings do.
struct CompileSettings {
  StringRef line; ///< Where it is said in the text, or its beginning.
  Request request;
  std::string errorText; ///< What is wrong with the words.
};
CompileSettings compileSettingsOf(StringRef path, StringRef text,
                                  ArrayRef<std::string> fallback,
                                  ReadOptions readOptions);

/// Lets a server read regular files alone, and not too much of them.
inline void restrictSources(SourceManager &sources) {
  sources.readsStreams = false;
  sources.maxTotalBytes = size_t(4) << 20;
}

/// A text, parsed and checked. Where it does not parse, names are those of the
/// statements that do.
struct Analysis {
  /// The text of `path` is `text`, whatever the file is.
  Analysis(StringRef path, const Text &text, const CompileSettings &setting,
           Session::Files files);

  /// The use that a byte of the file lies in, or just after; null for none.
  const sema::Observer::Use *useAt(size_t offset) const;
  /// The name that is declared at a place; null for none.
  const sema::Observer::Name *nameAt(SourceLoc declared) const;
  /// The place of a byte of the file; nowhere where that was not read.
  SourceLoc locOf(size_t offset) const;
  /// The byte of the file where a place begins; nothing for one of another.
  std::optional<size_t> offsetIn(SourceLoc place) const;

  std::string path;
  Session session;
  sema::Observer observer;
  bool parsedFully = true;       ///< All of the text.
  bool hasNoErrors = false;      ///< Without errors.
  llvm::json::Array diagnostics; ///< As the protocol wants them.
};

/// What a session found, as the protocol wants it: notes in other places as
/// related information, and under `data` the edits that would mend it.
llvm::json::Array diagnosticsOf(const Session &session, StringRef path,
                                const Text &text);
/// One that is said of a place of the text.
llvm::json::Object diagnosticAt(llvm::json::Object range, StringRef message);

/// Compiles the text and writes what came of it: `diagnostics`, `values` (by
/// the bytes where names are declared), `ranks`, `chunks`.
void writeCompiled(StringRef path, const Text &text, const Request &request,
                   Session::Files files, raw_ostream &out);

} // namespace ppcc::lsp
