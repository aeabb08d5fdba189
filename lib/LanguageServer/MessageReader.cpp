#include "MessageReader.h"

#include "ppcc/Support/JsonDepth.h"

#include <unistd.h>

using namespace ppcc::lsp;
namespace json = llvm::json;

std::optional<json::Value> MessageReader::take() {
  StringRef rest = StringRef(bytes).drop_front(begin);
  size_t head = rest.find("\r\n\r\n"), length = 0;
  if (head == StringRef::npos) {
    ended |= rest.size() > maxBytes;
    return std::nullopt;
  }
  for (StringRef line : llvm::split(rest.take_front(head), "\r\n"))
    if (line.consume_front("Content-Length:") &&
        (line.trim().getAsInteger(10, length) || length > maxBytes))
      length = 0;
  rest = rest.drop_front(head + 4);
  if (length == 0)
    ended = true;
  if (length == 0 || rest.size() < length)
    return std::nullopt;
  rest = rest.take_front(length);
  begin += head + 4 + length;
  if (isJsonDeeper(rest, 256))
    return json::Value(nullptr);
  auto value = json::parse(rest);
  if (value)
    return std::move(*value);
  llvm::consumeError(value.takeError());
  return json::Value(nullptr);
}

void MessageReader::fill() {
  bytes.erase(0, begin);
  begin = 0;
  char buffer[1 << 16];
  ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
  if (count > 0)
    bytes.append(buffer, count);
  else if (count == 0 || errno != EINTR)
    ended = true;
}
