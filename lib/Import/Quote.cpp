// Quotes text of a file in messages.
#include "Quote.h"

std::string ppcc::quote(StringRef text, size_t longest) {
  return text.take_front(longest).str() + (text.size() > longest ? "..." : "");
}
