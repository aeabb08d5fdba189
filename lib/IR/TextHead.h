// What the readers of the items of a program's head share.
#pragma once

#include "TextReader.h"

namespace ppcc {

/// A head, and the text that it is read from, item by item. What refers to
/// items that may stand after it is checked at the end.
struct TextHead {
  TextReader &in;
  Head &head;

  /// A string, the name of a pipe.
  PipeId pipeName() {
    std::string name = in.string("the name of a pipe");
    for (PipeId id : head.pipeIds())
      if (in.ok() && head.pipes[id.value].name == name)
        return id;
    in.refuse<diag::IrUndefined>(in.keyRange(), "pipe",
                                 fmt::format("`{}`", name));
    return PipeId();
  }
  /// The kind with this mnemonic; when it does not compute, the report adds
  /// `others` to what there may be.
  KindId computeKind(StringRef mnemonic, SourceRange at,
                     StringRef others = "") {
    auto kind = head.kinds.find(mnemonic);
    if (!kind || !head.kinds[*kind].isCompute())
      in.expected(at, fmt::format("the letters of a compute action{}", others));
    return kind.value_or(KindId());
  }
  /// Takes the mnemonic of a kind that computes.
  KindId takeComputeKind(SourceRange &at) {
    StringRef mnemonic = in.takeWord(at);
    return computeKind(mnemonic, at);
  }
};

} // namespace ppcc
