// What the language server finds out about a text.
#pragma once

#include "ppcc/Editor/Editor.h"
#include "ppcc/LanguageServer/LanguageServer.h"
#include "ppcc/Sema/Observer.h"

#include "llvm/Support/JSON.h"

namespace ppcc::lsp {

/// A text with its lines and names. Positions of the protocol are lines and
/// columns from 0, columns in units of UTF-16.
class Text {
public:
  explicit Text(std::string text);
  Text(const Text &) = delete;

  StringRef all() const { return text; }
  llvm::json::Object position(size_t offset) const;
  llvm::json::Object range(size_t begin, size_t end) const {
    return llvm::json::Object{{"start", position(begin)},
                              {"end", position(end)}};
  }
  llvm::json::Object range(StringRef word) const {
    return range(offset(word), offset(word) + word.size());
  }
  /// The byte where a word of the text begins.
  size_t offset(StringRef word) const { return word.begin() - text.data(); }
  /// The byte at a position; the end for one that there is not.
  size_t offset(const llvm::json::Object *position) const;
  /// The line that a byte stands in, without its end.
  StringRef line(size_t offset) const;
  /// The edit that imports a file: after the comment at the top.
  llvm::json::Object importOf(StringRef file) const;

private:
  std::string text;
  std::vector<size_t> lineStarts{0};
  /// The last position that was asked for: the next is often in its line.
  mutable struct {
    size_t offset = 0, column = 0;
  } last;

public:
  const editor::SymbolIndex names;
};
using TextPtr = std::shared_ptr<const Text>;

/// How many units of UTF-16 the bytes are.
size_t utf16Length(StringRef bytes);

llvm::json::Object edit(llvm::json::Object range, std::string newText);
llvm::json::Object location(StringRef uri, llvm::json::Object range);

/// The file of a `file://` address, or of one inside the compiler; other
/// addresses as they are.
std::string pathOf(StringRef uri);
/// The address of a file.
std::string uriOf(StringRef path);
/// Behind which addresses name files that are inside the compiler.
inline constexpr StringRef libraryScheme = "ppcc://library/";

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
