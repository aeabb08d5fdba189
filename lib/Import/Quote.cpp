// Quotes text of a file in messages.
#include "Quote.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

std::string ppcc::quote(llvm::StringRef text, size_t longest) {
  std::string result;
  for (char c : text.take_front(longest))
    result += llvm::isPrint(c)
                  ? std::string(1, c)
                  : fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
  return result + (text.size() > longest ? "..." : "");
}
