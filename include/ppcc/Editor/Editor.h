// What editors ask of any text: its words, its names, its style, and what the
// words of the language mean.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc::editor {

enum class TokenKind : uint8_t { Word, Number, String, Comment, Symbol };

/// A piece of text between spaces. Any text has tokens: what the language does
/// not know is a symbol of one character.
struct Token {
  TokenKind kind;
  StringRef text; ///< Within the text that was given.

  bool is(StringRef other) const { return text == other && !isString(); }
  bool isWord() const { return kind == TokenKind::Word; }
  bool isString() const { return kind == TokenKind::String; }
  bool isComment() const { return kind == TokenKind::Comment; }
};

/// The tokens in order. O(text).
std::vector<Token> tokenize(StringRef text);
std::vector<Token> withoutComments(std::vector<Token> tokens);

inline bool isWordCharacter(char c) { return llvm::isAlnum(c) || c == '_'; }

/// A row of Words.def.
struct Word {
  StringRef name, what, form, text;
};

inline constexpr Word words[] = {
#define WORD(name, what, form, text) {name, what, form, text},
#include "ppcc/Editor/Words.def"
};

/// A row of Words.def about a word inside of braces.
struct Setting {
  StringRef block, name, values, text;
};

inline constexpr Setting settings[] = {
#define WORD(name, what, form, text)
#define SETTING(block, name, values, text) {block, name, values, text},
#include "ppcc/Editor/Words.def"
};

/// The row of a name; null for one that is none.
inline const Word *findWord(StringRef name) {
  return findBy(words, name, &Word::name);
}

/// The text in the style of the library of schedules: two spaces a brace, four
/// more where a statement goes on; one space between words and around
/// operators; at most one empty line. Where lines break is the writer's, and so
/// are columns that stand below each other, the ends of lines (CR LF) and a
/// byte order mark. Tokens and comments are those of the text, whatever it is;
/// a text in that style stays as it is. O(text).
std::string format(StringRef text);

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
