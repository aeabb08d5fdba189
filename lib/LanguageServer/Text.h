// A text as the language server protocol sees it.
#pragma once

#include "ppcc/Editor/SymbolIndex.h"
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

} // namespace ppcc::lsp
