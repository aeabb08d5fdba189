// The words of the language, explained.
#pragma once

#include "ppcc/Support/LLVM.h"

namespace ppcc::editor {

/// A row of Words.def.
struct Word {
  StringRef name, what, form, text;
};

ArrayRef<Word> words();
/// The row of a name; null for one that is none.
const Word *findWord(StringRef name);

} // namespace ppcc::editor
