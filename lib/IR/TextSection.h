// What the readers of the sections of a program's head share.
#pragma once

#include "TextCursor.h"
#include "ppcc/IR/Program.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ppcc {

/// Reads items of one subject into a program. A function that reads an item
/// starts behind its key, and gives false after a report, when the rest of the
/// line cannot be read. What refers to items that may stand behind it is
/// checked at the end.
class TextSection {
protected:
  TextSection(TextCursor &text, Head &program, DiagnosticEngine &diags)
      : text(text), program(program), diags(diags) {}

  /// Takes a string, the name of a pipe. Nothing, and a report, when there is
  /// no such pipe.
  std::optional<PipeId> pipeName();
  /// Takes a name; nothing, and a report that `what` should stand there, for
  /// anything else.
  std::optional<llvm::StringRef> takeName(llvm::StringRef what);
  /// The kind with these letters; nothing, and a report that adds `others` to
  /// what there may be, when it does not compute.
  std::optional<KindId> computeKind(llvm::StringRef letters, SourceRange at,
                                    llvm::StringRef others = "");
  /// Takes the letters of a kind that computes.
  std::optional<KindId> takeComputeKind(SourceRange &at) {
    llvm::StringRef letters = text.takeWord(at);
    return computeKind(letters, at);
  }

  TextCursor &text;
  Head &program;
  DiagnosticEngine &diags;
};

} // namespace ppcc
