// What the readers of the sections of a program's head share.
#include "TextSection.h"

#include "ppcc/IR/HeadChecks.h"

#include "llvm/ADT/STLExtras.h"

using namespace ppcc;
using llvm::StringRef;

std::optional<PipeId> TextSection::pipeName() {
  auto name = text.string("the name of a pipe");
  if (!name)
    return std::nullopt;
  auto pipe = llvm::find_if(
      program.pipes, [&](const Pipe &pipe) { return pipe.name == *name; });
  if (pipe != program.pipes.end())
    return PipeId(pipe - program.pipes.begin());
  diags.report<diag::IrNoEntry>(text.keyRange(), "pipe",
                                fmt::format("`{}`", *name));
  return std::nullopt;
}

std::optional<StringRef> TextSection::takeName(StringRef what) {
  SourceRange at;
  StringRef name = text.takeWord(at);
  if (isName(name))
    return name;
  diags.report<diag::IrExpected>(at.valid() && !name.empty() ? at : text.here(),
                                 what);
  return std::nullopt;
}

std::optional<KindId>
TextSection::computeKind(StringRef letters, SourceRange at, StringRef others) {
  auto kind = program.kinds.find(letters);
  if (kind && program.kinds[*kind].isCompute())
    return kind;
  diags.report<diag::IrExpected>(
      at, fmt::format("the letters of a compute action{}", others));
  return std::nullopt;
}
