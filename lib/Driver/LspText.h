// A text as the language server protocol sees it.
#pragma once

#include "ppcc/Support/LLVM.h"
#include "llvm/Support/JSON.h"

namespace ppcc::lsp {

/// A text with its lines. Positions of the protocol are lines and columns from
/// 0, columns in units of UTF-16.
class Text {
public:
  explicit Text(std::string text);

  StringRef all() const { return text; }
  llvm::json::Object position(size_t offset) const;
  llvm::json::Object range(size_t begin, size_t end) const {
    return llvm::json::Object{{"start", position(begin)},
                              {"end", position(end)}};
  }
  llvm::json::Object range(StringRef word) const {
    size_t begin = word.begin() - text.data();
    return range(begin, begin + word.size());
  }
  /// The byte at a position; the end for one that there is not.
  size_t offset(const llvm::json::Object *position) const;
  /// The line that a byte stands in, without its end.
  StringRef line(size_t offset) const;
  /// Where an import may be added: behind the comment at the top.
  size_t importPlace() const;

private:
  std::string text;
  std::vector<size_t> lineStarts{0};
};

/// How many units of UTF-16 the bytes are.
size_t utf16Length(StringRef bytes);

/// The file of a `file://` address; other addresses as they are.
std::string pathOf(StringRef uri);
/// The address of a file, or of a library's file by its name.
std::string uriOf(StringRef path);
/// Behind which addresses name files that are inside the compiler.
inline constexpr StringRef libraryScheme = "ppcc://library/";

} // namespace ppcc::lsp
