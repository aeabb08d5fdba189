// The words of a schedule as an editor sees them: whatever the text is, with
// its comments.
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

} // namespace ppcc::editor
