// The words of the language, explained.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace ppcc::editor {

/// A row of Words.def.
struct Word {
  llvm::StringRef name, what, form, text;
};

llvm::ArrayRef<Word> words();
/// The row of a name; null for one that is none.
const Word *findWord(llvm::StringRef name);

} // namespace ppcc::editor
