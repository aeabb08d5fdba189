#include "Analysis.h"

#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Support/Uri.h"

#include "llvm/Support/ConvertUTF.h"

using namespace ppcc;
namespace json = llvm::json;

lsp::Text::Text(std::string given) : text(std::move(given)), names(text) {
  for (size_t i = 0; i != text.size(); ++i)
    if (text[i] == '\n')
      lineStarts.push_back(i + 1);
}

size_t lsp::utf16Length(StringRef bytes) {
  size_t units = 0;
  for (unsigned char c : bytes)
    units += (c & 0xC0) != 0x80 ? 1 + (c >= 0xF0) : 0;
  return units;
}

json::Object lsp::Text::position(size_t offset) const {
  size_t line = llvm::upper_bound(lineStarts, offset) - lineStarts.begin() - 1;
  if (last.offset < lineStarts[line] || last.offset > offset)
    last = {lineStarts[line], 0};
  last = {offset, last.column + utf16Length(all().slice(last.offset, offset))};
  return json::Object{{"line", int64_t(line)},
                      {"character", int64_t(last.column)}};
}

size_t lsp::Text::offset(const json::Object *position) const {
  int64_t line = position ? position->getInteger("line").value_or(0) : 0;
  int64_t column = position ? position->getInteger("character").value_or(0) : 0;
  if (line < 0 || size_t(line) >= lineStarts.size())
    return text.size();
  size_t at = lineStarts[line];
  while (column > 0 && at < text.size() && text[at] != '\n') {
    size_t bytes = llvm::getNumBytesForUTF8(uint8_t(text[at]));
    column -= bytes == 4 ? 2 : 1;
    at = std::min(at + bytes, text.size());
  }
  return at;
}

StringRef lsp::Text::line(size_t offset) const {
  size_t begin = all().take_front(offset).rfind('\n') + 1;
  return all().drop_front(begin).split('\n').first;
}

json::Object lsp::Text::importOf(StringRef file) const {
  size_t at = 0;
  while (all().drop_front(at).starts_with("//"))
    at = std::min(at + line(at).size() + 1, text.size());
  return edit(range(at, at), "import \"" + file.str() + "\";\n");
}

json::Object lsp::edit(json::Object range, std::string newText) {
  return json::Object{{"range", std::move(range)},
                      {"newText", std::move(newText)}};
}

json::Object lsp::location(StringRef uri, json::Object range) {
  return json::Object{{"uri", uri.str()}, {"range", std::move(range)}};
}

std::string lsp::pathOf(StringRef uri) {
  if (uri.consume_front(libraryScheme))
    return (libraryFolder + uri).str();
  return uri.consume_front("file://") ? percentDecoded(uri) : uri.str();
}

std::string lsp::uriOf(StringRef path) {
  return path.consume_front(libraryFolder) ? (libraryScheme + path).str()
                                           : fileUri(path);
}
