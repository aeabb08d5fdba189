#include "ppcc/Support/Uri.h"

using namespace ppcc;

std::string ppcc::percentDecoded(StringRef text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code;
    bool isCode =
        text[i] == '%' && !text.substr(i + 1, 2).getAsInteger(16, code);
    result += isCode ? char(code) : text[i];
    i += isCode ? 2 : 0;
  }
  return result;
}

std::string ppcc::fileUri(StringRef path) {
  std::string uri = "file://";
  for (char c : path)
    if (llvm::isAlnum(c) || StringRef("/-._~").contains(c))
      uri += c;
    else
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return uri;
}
