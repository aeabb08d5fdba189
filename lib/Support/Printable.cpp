#include "ppcc/Support/Printable.h"

#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Unicode.h"

using namespace ppcc;

/// The text with each character that is not printable as `escape` writes it,
/// which takes 0 for a byte that is no UTF-8.
template <class Escape>
static std::string escaped(StringRef text, Escape escape) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    StringRef ascii = text.take_while([](char c) { return llvm::isPrint(c); });
    result.append(ascii.data(), ascii.size());
    text = text.drop_front(ascii.size());
    if (text.empty())
      break;
    auto *from = reinterpret_cast<const llvm::UTF8 *>(text.data()), *at = from;
    llvm::UTF32 character = 0;
    llvm::convertUTF8Sequence(&at, from + text.size(), &character,
                              llvm::strictConversion);
    StringRef bytes = text.take_front(std::max<size_t>(at - from, 1));
    if (at != from && llvm::sys::unicode::isPrintable(character))
      result.append(bytes.data(), bytes.size());
    else
      result += escape(at == from ? 0 : character, bytes.front());
    text = text.drop_front(bytes.size());
  }
  return result;
}

std::string ppcc::printable(StringRef text) {
  return escaped(text, [](uint32_t character, char byte) -> std::string {
    switch (byte) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    }
    return character < 0x80 ? fmt::format("\\x{:02X}", uint8_t(byte))
                            : fmt::format("\\u{{{:X}}}", character);
  });
}

std::optional<std::string> ppcc::takeEscape(StringRef &text) {
  char letter = text.front();
  text = text.drop_front();
  uint32_t value;
  switch (letter) {
  case 'n':
    return "\n";
  case 'r':
    return "\r";
  case 't':
    return "\t";
  case '"':
  case '\\':
    return std::string(1, letter);
  case 'x':
    if (text.size() < 2 || text.take_front(2).getAsInteger(16, value))
      return std::nullopt;
    text = text.drop_front(2);
    return std::string(1, static_cast<char>(value));
  case 'u':
    auto [digits, rest] = text.split('}');
    char bytes[UNI_MAX_UTF8_BYTES_PER_CODE_POINT], *end = bytes;
    if (!digits.consume_front("{") || digits.getAsInteger(16, value) ||
        !llvm::ConvertCodePointToUTF8(value, end))
      return std::nullopt;
    text = rest;
    return std::string(bytes, end);
  }
  return std::nullopt;
}

std::string ppcc::printableJson(StringRef json) {
  return escaped(json, [](uint32_t character, char byte) -> std::string {
    if (character == 0 || llvm::isSpace(byte))
      return std::string(1, byte);
    auto unit = [](uint32_t unit) { return fmt::format("\\u{:04x}", unit); };
    if (character < 0x10000)
      return unit(character);
    return unit(0xD7C0 + (character >> 10)) +
           unit(0xDC00 + (character & 0x3FF));
  });
}

size_t ppcc::columnsOf(StringRef text) {
  int columns = llvm::sys::unicode::columnWidthUTF8(text);
  return columns < 0 ? text.size() : columns;
}
