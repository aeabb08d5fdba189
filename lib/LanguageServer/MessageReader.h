// Messages of the language server protocol, read from the standard input.
#pragma once

#include "ppcc/Support/LLVM.h"
#include "llvm/Support/JSON.h"

namespace ppcc::lsp {

class MessageReader {
public:
  /// The next message that has come whole. Null for one that is no JSON: of the
  /// right length, so that the next may be good.
  std::optional<llvm::json::Value> take();
  /// Reads what has come; waits for it when nothing has.
  void fill();
  /// At the end of the input, and where what came is no message.
  bool isAtEnd() const { return ended; }

private:
  static constexpr size_t maxBytes = size_t(64) << 20;

  std::string bytes;
  size_t begin = 0; ///< Of what was not taken.
  bool ended = false;
};

} // namespace ppcc::lsp
