// What the readers of the sections of a program's head share.
#include "TextSection.h"
#include "ppcc/Basic/Diagnostics/IR.h"

using namespace ppcc;

PipeId TextSection::pipeName() {
  std::string name = string("the name of a pipe");
  for (PipeId id : head.pipeIds())
    if (going && head.pipes[id.value].name == name)
      return id;
  refuse<diag::IrNoEntry>(text.keyRange(), "pipe", fmt::format("`{}`", name));
  return PipeId();
}

StringRef TextSection::name(StringRef what) {
  SourceRange at;
  StringRef name = going ? text.takeWord(at) : "";
  if (!isName(name))
    expected(name.empty() ? text.here() : at, what);
  return name;
}

KindId TextSection::computeKind(StringRef letters, SourceRange at,
                                StringRef others) {
  auto kind = head.kinds.find(letters);
  if (!kind || !head.kinds[*kind].isCompute())
    expected(at, fmt::format("the letters of a compute action{}", others));
  return kind.value_or(KindId());
}
