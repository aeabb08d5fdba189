// The table of formats.
#include "Emitters.h"

#include "llvm/ADT/StringExtras.h"

using namespace ppcc;
using llvm::StringRef;

static constexpr Emitter table[] = {
#define EMITTER(Name, Function, Summary) {Name, Function, Summary},
#include "ppcc/Emit/Emitters.def"
#undef EMITTER
};

llvm::ArrayRef<Emitter> ppcc::emitters() { return table; }

const Emitter *ppcc::findEmitter(StringRef name) {
  for (const Emitter &emitter : table)
    if (emitter.name == name)
      return &emitter;
  return nullptr;
}

std::optional<TorchVersion> ppcc::parseTorchVersion(StringRef text) {
  TorchVersion version;
  if (text.consumeInteger(10, version.major) || !text.consume_front(".") ||
      text.consumeInteger(10, version.minor))
    return std::nullopt;
  if (!text.empty() && llvm::isAlnum(text.front()))
    return std::nullopt;
  return version;
}
