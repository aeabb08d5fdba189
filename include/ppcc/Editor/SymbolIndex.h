// Which word of a schedule means which, whatever the text is.
#pragma once

#include "ppcc/Editor/Tokens.h"
#include "ppcc/Support/LLVM.h"

namespace ppcc::editor {

/// What a name was declared with: `schedule`, `fn`, `let`, `parameter`, ...
struct Declaration {
  StringRef what;          ///< The word before it; `parameter` in brackets.
  StringRef name;          ///< Where it stands in the text.
  const char *begin, *end; ///< Where it is seen; at file level everywhere.
  bool isAtFileLevel = false;
  /// Its body, if it has one: up to the closing brace.
  const char *bodyEnd = nullptr;

  bool isSeenAt(const char *place) const {
    return begin <= place && place < end;
  }
};

/// The declarations of a text, in the order in which they stand, and the words
/// that mean them. Scopes are braces, as in the language; a text that does not
/// parse has names all the same.
class SymbolIndex {
public:
  explicit SymbolIndex(StringRef text);

  ArrayRef<Token> tokens() const { return all; }
  ArrayRef<Declaration> declarations() const { return declared; }
  /// What declares a name for all of the text; null for nothing.
  const Declaration *atFileLevel(StringRef name) const;
  /// What the word at a place of the text means, if that stands in the text:
  /// the innermost declaration that is seen there.
  const Declaration *meaning(StringRef word) const;
  /// The words that mean a declaration, itself among them.
  std::vector<StringRef> occurrences(const Declaration &of) const;
  /// The word that a byte of the text lies in, or just after; empty for none.
  StringRef wordAt(size_t offset) const;
  /// The comment that stands above a declaration, without its slashes.
  std::string comment(const Declaration &of) const;

private:
  StringRef text;
  std::vector<Token> all;
  std::vector<Declaration> declared;
  DenseMap<const char *, size_t> meanings; ///< Of words, by where they begin.
};

} // namespace ppcc::editor
